//! Raw pages of the kernel's ring buffer and rings of perf events, decoded as the recorder does:
//! for tests and for fuzzing.

use std::ops::Range;

use iolab_trace::ring::perf::{self, PerfRecord};
use iolab_trace::ring::{
    Description, LostBefore, Merger, Page, PageLayout, RecordDecoder, check_event_header,
};
use iolab_trace::{Error, Event};
use pyo3::prelude::*;
use serde::Serialize;

use crate::error::trace_error;

#[derive(Default, Serialize)]
struct Decoded {
    events: u64,
    damaged_pages: u64,
    pages_after_losses: u64,
    last_ns: u64,
}

/// Decodes pages by the kernel's own descriptions.
///
/// `headers` are the texts of `header_page` and `header_event`, `formats` those of the events; per
/// CPU there are its pages. Answers with counts, as JSON.
#[pyfunction]
pub fn trace_ring_pages(
    py: Python<'_>,
    headers: (String, String),
    formats: Vec<String>,
    cpus: Vec<Vec<u8>>,
) -> PyResult<String> {
    let done = py.detach(|| decode(&headers, &formats, &cpus));
    let decoded = done.map_err(|error| trace_error(py, error))?;
    serde_json::to_string(&decoded).map_err(|error| trace_error(py, error))
}

fn decode(
    (page, event): &(String, String),
    formats: &[String],
    cpus: &[Vec<u8>],
) -> Result<Decoded, Error> {
    check_event_header(event)?;
    let layout = PageLayout::parse(page)?;
    let mut decoder = RecordDecoder::default();
    learn(&mut decoder, formats)?;
    let (mut found, mut merger) = (Decoded::default(), Merger::default());
    for (cpu, bytes) in cpus.iter().enumerate() {
        for bytes in bytes.chunks(layout.page_bytes) {
            let mut page = Page::new(bytes, &layout);
            found.pages_after_losses += u64::from(page.lost() != LostBefore::None);
            for record in page.by_ref() {
                take(&mut decoder, &mut merger, (record.time_ns, cpu as u32), record.content);
            }
            found.damaged_pages += u64::from(page.is_damaged());
        }
    }
    count(&mut found, &mut merger);
    Ok(found)
}

/// Decodes the bytes of a ring of perf events, from one counter to another, by descriptions.
///
/// Answers with counts, as JSON.
#[pyfunction]
pub fn trace_perf_ring(
    py: Python<'_>,
    formats: Vec<String>,
    ring: Vec<u8>,
    span: (u64, u64),
) -> PyResult<String> {
    let done = py.detach(|| decode_perf(&formats, &ring, span.0..span.1));
    let decoded = done.map_err(|error| trace_error(py, error))?;
    serde_json::to_string(&decoded).map_err(|error| trace_error(py, error))
}

fn decode_perf(formats: &[String], ring: &[u8], span: Range<u64>) -> Result<Decoded, Error> {
    let mut decoder = RecordDecoder::default();
    learn(&mut decoder, formats)?;
    let (mut found, mut merger) = (Decoded::default(), Merger::default());
    let copy = |from: u64, length: usize, out: &mut Vec<u8>| {
        let at = (from % (ring.len() as u64).max(1)) as usize;
        out.extend(ring.iter().cycle().skip(at).take(length));
    };
    let sink = |record: PerfRecord<'_>| match record {
        PerfRecord::Record(time_ns, content) => {
            take(&mut decoder, &mut merger, (time_ns, 0), content);
        }
        PerfRecord::Lost(_) => found.pages_after_losses += 1,
    };
    perf::records(span, copy, sink);
    count(&mut found, &mut merger);
    Ok(found)
}

/// Learns events: those of block devices, those of new names, and any other as the recorder learns
/// those of other layers.
fn learn(decoder: &mut RecordDecoder, formats: &[String]) -> Result<(), Error> {
    for format in formats {
        let description = Description::parse("format", format)?;
        let is_rename = description.name == "task_rename" && decoder.learn_rename(&description);
        if !is_rename && !decoder.learn(&description)? {
            decoder.learn_point("layer", &description);
        }
    }
    Ok(())
}

fn take(decoder: &mut RecordDecoder, merger: &mut Merger, place: (u64, u32), content: &[u8]) {
    let (mut event, mut note) = (Event::default(), None);
    if decoder.read(content, place, &mut event, &mut note) {
        if let Some(note) = note {
            merger.push(note);
        }
        merger.push(event);
    }
}

/// Counts what comes out, which must be in the order of time.
fn count(found: &mut Decoded, merger: &mut Merger) {
    for event in merger.take_all() {
        assert!(event.time_ns >= found.last_ns, "events are in the order of time");
        (found.events, found.last_ns) = (found.events + 1, event.time_ns);
    }
}
