//! Treatment of the files of jobs before the time begins.

use iolab_workload::spec::Opening;

use super::super::host::{Host, There};
use super::super::job::Job;
use super::super::places::Path;
use super::{Lowering, Result, Work};
use crate::diagnostic::Problem;

impl<H: Host> Lowering<'_, H> {
    /// Tell whether what has a path holds so many bytes.
    pub(super) fn is_large(&self, path: &Path, bytes_needed: u64) -> bool {
        match self.host.at(&path.text()) {
            There::File(bytes) | There::Device(bytes) => bytes >= bytes_needed,
            _ => false,
        }
    }

    /// Treatment of a file before the time begins.
    pub(super) fn opening(
        &self,
        job: &Job,
        paths: &[Path],
        (bytes_needed, is_here): (u64, bool),
        before: &[Work],
    ) -> Result<Opening> {
        let is_plain = job.rw.writes() && !job.rw.reads() && !job.rw.trims();
        let is_cut_short = job.verify.is_some() && job.may_end_early();
        // What is mapped has its length beforehand; fio writes all of it, so that no fault makes a
        // block.
        let is_mapped = job.engine == "mmap";
        if is_plain && !job.is_overwritten && !is_cut_short && !is_mapped {
            return Ok(Opening::Keep);
        }
        let large = |path: &Path| self.is_large(path, bytes_needed);
        let small = |path: &Path| match self.host.at(&path.text()) {
            There::Device(bytes) if bytes < bytes_needed => Some((path.text(), bytes)),
            _ => None,
        };
        if let (true, Some((path, bytes))) = (is_here, paths.iter().find_map(small)) {
            let what = format!("{path} has {bytes} bytes, and the job works on {bytes_needed}");
            let problem = Problem::new(what, "write a smaller size= or offset=, or size=100%");
            return self.at(job, ("size", problem));
        }
        if is_here && paths.iter().all(large) {
            return Ok(Opening::Existing);
        }
        let is_made = |path: &Path| before.iter().any(|work| work.paths.contains(path));
        if job.verifies_earlier() {
            if let Some(path) = paths.iter().find(|path| !is_made(path)) {
                let what = format!("{} does not hold what is to be verified", path.text());
                let remedy = "write it first, with the same file, sizes and verify=: by a job \
                              before it, or, where files stay (no --on), by a command before";
                return self.at(job, ("verify", Problem::new(what, remedy)));
            }
            return Ok(Opening::Existing);
        }
        let is_missing = |path: &&Path| !large(path) && !is_made(path);
        if let (true, Some(path)) =
            (self.typing.program.is_readonly && is_here, paths.iter().find(is_missing))
        {
            let what = format!(
                "{} would be written before it is read, but --readonly is given",
                path.text()
            );
            let remedy = "make the file first, or leave --readonly out";
            return self.at(job, ("rw", Problem::new(what, remedy)));
        }
        if !job.may_create && !paths.iter().all(is_made) {
            let what = "file creation disallowed by allow_file_create=0".to_owned();
            let problem = Problem::new(what, "make the file first, or leave the option out");
            return self.at(job, ("allow_file_create", problem));
        }
        Ok(Opening::LaidOut)
    }
}
