//! Raw pages of the kernel's ring buffer, decoded as the recorder does: for tests and for fuzzing.

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
    for format in formats {
        decoder.learn(&Description::parse("format", format)?)?;
    }
    let (mut found, mut merger) = (Decoded::default(), Merger::default());
    for (cpu, bytes) in cpus.iter().enumerate() {
        for bytes in bytes.chunks(layout.page_bytes) {
            let mut page = Page::new(bytes, &layout);
            found.pages_after_losses += u64::from(page.lost() != LostBefore::None);
            for record in page.by_ref() {
                let (mut event, mut note) = (Event::default(), None);
                let place = (record.time_ns, cpu as u32);
                if decoder.read(record.content, place, &mut event, &mut note) {
                    if let Some(note) = note {
                        merger.push(note);
                    }
                    merger.push(event);
                }
            }
            found.damaged_pages += u64::from(page.is_damaged());
        }
    }
    for event in merger.take_all() {
        assert!(event.time_ns >= found.last_ns, "events are in the order of time");
        (found.events, found.last_ns) = (found.events + 1, event.time_ns);
    }
    Ok(found)
}
