//! Part of a file that a job works on, and the bytes that it moves.

use super::host::{Host, There};
use super::job::Job;
use super::value::Amount;
use crate::diagnostic::Problem;

/// Name of an option, and what is wrong with it in its job.
pub type Wrong = (&'static str, Problem);

/// Part of a file and the bytes to move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Bytes of a transfer.
    pub io: u64,
    /// Bytes that the file must have.
    pub file: u64,
    /// Beginning of the first clone's region.
    pub from: u64,
    /// Length of a region.
    pub region: u64,
    /// From one clone's region to the next.
    pub step: u64,
    /// Clones' regions begin at shares of the file, rounded up to whole transfers: bytes of the
    /// file, percent and bytes of a transfer.
    pub shares: Option<(u64, u64, u64)>,
    /// Transfers of all passes.
    pub ops: u64,
}

impl Geometry {
    /// Beginning of the region of a clone.
    pub fn begin_of(&self, clone: u64) -> u64 {
        let Some((bytes, percent, align)) = self.shares else {
            return self.from + self.step * clone;
        };
        self.from + percent_of(bytes, percent.saturating_mul(clone)).next_multiple_of(align)
    }
}

fn wrong<T>(name: &'static str, what: String, remedy: &str) -> Result<T, Wrong> {
    Err((name, Problem::new(what, remedy)))
}

/// Bytes of a transfer, if they are always the same.
pub fn io_bytes(job: &Job) -> Result<u64, Wrong> {
    let sizes = job.sizes();
    let place = usize::from(!job.rw.reads());
    let (low, high) = sizes[place];
    let name = if job.bsrange[place].is_some() { "bsrange" } else { "bs" };
    if low != high || (job.rw.is_mixed() && sizes[1] != sizes[0]) {
        let what = "transfers of several sizes in one job are not done here".to_owned();
        return wrong(name, what, "write one size, or one job per size");
    }
    Ok(low)
}

/// The geometry of a job whose file is at `path`; `None`: it has none (engine null). `io`: bytes of
/// its smallest transfer.
pub fn geometry(
    job: &Job,
    host: &impl Host,
    path: Option<&str>,
    io: u64,
) -> Result<Geometry, Wrong> {
    let found = path.map(|path| host.at(path));
    let there = match found {
        Some(There::File(bytes) | There::Device(bytes)) if bytes > 0 => Some(bytes),
        _ => None,
    };
    let filesize = job.filesize.map(|(bytes, _)| bytes);
    let known = filesize.or(there);
    let size = match (job.size, known) {
        (Some(Amount::Bytes(bytes)), _) => Some(bytes).filter(|bytes| *bytes > 0),
        (Some(Amount::Percent(percent)), Some(bytes)) => Some(percent_of(bytes, percent)),
        (Some(Amount::Percent(_)), None) => {
            let what = "size is in percent, and the file is not there".to_owned();
            return wrong("size", what, "write bytes, or filesize= beside it");
        }
        (None, _) => None,
    };
    let Some(whole) = known.or(size) else { return without_size(job) };
    let appended = if job.is_appended { there.unwrap_or(0) } else { 0 };
    let from = offset(job, whole, io)?.saturating_add(appended);
    let step = match job.offset_increment {
        Amount::Bytes(bytes) => bytes,
        Amount::Percent(percent) => percent_of(whole, percent).next_multiple_of(io.max(1)),
    };
    let shares = match job.offset_increment {
        Amount::Bytes(_) => None,
        Amount::Percent(percent) => Some((whole, percent, align_of(job, io))),
    };
    // With a size of the file size= is only an amount; without it is the region as well.
    let last = from.checked_add(step.saturating_mul(job.clones - 1));
    let last = last.filter(|last| *last < i64::MAX as u64 / 2);
    let Some(last) = last else {
        let what = "the region lies beyond the end of any file".to_owned();
        return wrong("offset_increment", what, "write less");
    };
    let region = match (filesize, size) {
        (_, Some(size)) if job.is_appended => size,
        (Some(bytes), _) => bytes.saturating_sub(last),
        (None, Some(size)) => size,
        (None, None) => whole.saturating_sub(last),
    };
    // A device does not grow: a region ends where it ends, as with fio. Clones with regions of
    // their own, of which the last would be shorter, are refused later.
    let region = match found {
        Some(There::Device(bytes)) if last == from => region.min(bytes.saturating_sub(last)),
        _ => region,
    };
    let is_beyond = known.is_some() && job.size.is_none() && last >= whole;
    if region == 0 || is_beyond {
        let what = format!("{}: you need to specify valid offset=", job.name);
        return wrong("offset", what, "let it be smaller than the file");
    }
    if region < io {
        let what = format!(
            "{}: size too small, must not be less than minimum block size: {region} < {io}",
            job.name
        );
        return wrong("size", what, "write a larger size= or a smaller bs=");
    }
    let file = filesize.unwrap_or(0).max(last + region);
    let ops = amount(job, (size.unwrap_or(region), region, io))?;
    Ok(Geometry { io, file, from, region, step, shares, ops })
}

/// Refuses a job of which nothing says how large it is.
fn without_size(job: &Job) -> Result<Geometry, Wrong> {
    if job.fills {
        let what = "fill_device fills no file system up, and the file is not there".to_owned();
        return wrong("fill_device", what, "write size=, or use a whole device");
    }
    let what = format!("{}: you need to specify size=", job.name);
    wrong("size", what, "write size=, or name a file that has data")
}

/// A share of so many bytes.
pub fn percent_of(bytes: u64, percent: u64) -> u64 {
    ((u128::from(bytes) * u128::from(percent)) / 100) as u64
}

/// Unit of places that are shares of a file.
fn align_of(job: &Job, io: u64) -> u64 {
    if job.offset_align > 0 { job.offset_align } else { io.max(1) }
}

fn offset(job: &Job, whole: u64, io: u64) -> Result<u64, Wrong> {
    let percent = match job.offset {
        Amount::Bytes(bytes) => return Ok(bytes),
        Amount::Percent(percent) => percent,
    };
    let align = align_of(job, io);
    let at = percent_of(whole, percent);
    let rounded = at.div_ceil(align).checked_mul(align);
    rounded.map_or_else(
        || wrong("offset", "the offset lies beyond the end of any file".into(), "write less"),
        Ok,
    )
}

/// Transfers of a job: its size is cut to whole ones, an amount is rounded up.
fn amount(job: &Job, (size, region, io): (u64, u64, u64)) -> Result<u64, Wrong> {
    let pass = match job.io_size {
        Some(Amount::Bytes(bytes)) => bytes.div_ceil(io),
        Some(Amount::Percent(percent)) => percent_of(region, percent).div_ceil(io),
        // More than the region holds is moved if io_size asks for it (seen of fio 3.33).
        None => size.min(region) / io,
    };
    if pass == 0 {
        let what = format!("{}: size {size} is less than a transfer of {io}", job.name);
        return wrong("size", what, "write a larger size= or a smaller bs=");
    }
    Ok(of_loops(job, pass, size.min(region) / io))
}

/// Transfers of all loops of a job, of which one is to move so many, and goes once through a region
/// of so many.
///
/// A single loop moves what was asked for, however often it comes to the end of the region. Of
/// several each ends there at the latest, and there are more of them if they move too little (seen
/// of fio 3.33).
pub fn of_loops(job: &Job, asked: u64, region: u64) -> u64 {
    let counted = Some(job.number_ios).filter(|count| *count > 0);
    let most = counted.unwrap_or(u64::MAX);
    if job.loops <= 1 {
        return asked.min(most);
    }
    let each = asked.min(region.max(1)).min(most);
    let loops = if counted.is_some() { job.loops } else { job.loops.max(asked.div_ceil(each)) };
    each.saturating_mul(loops)
}
