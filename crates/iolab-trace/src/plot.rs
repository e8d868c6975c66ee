//! A block trace as a picture: places over time, throughput and seek distances.

use std::collections::HashMap;

use serde::Serialize;

use crate::Error;
use crate::density::{Density, Picture, halved};
use crate::event::{Action, Categories, Device, Event};
use crate::source::Source;

/// Columns of a picture, at most.
pub const COLUMNS: usize = 512;
/// Rows of a picture, at most.
pub const ROWS: usize = 128;
/// Devices that are drawn at most: each has a picture of its own.
const DEVICES_MAX: usize = 64;
/// Classes of distances of each power of two, as bits.
const CLASS_BITS: u32 = 3;
/// Classes of distances.
const CLASSES: usize = 65 << CLASS_BITS;

/// Requests of one column.
#[derive(Clone, Default)]
struct Column {
    bytes: [u64; 2],
    requests: u64,
    /// Requests, and the sum of their distances from the one before, by the class of these.
    distances: Vec<(u32, f64)>,
}

/// Class of a distance: those of a class differ by an eighth at most.
fn class_of(distance: u64) -> usize {
    let power = 64 - distance.leading_zeros();
    let lowest = power.saturating_sub(1 + CLASS_BITS);
    let within = (distance >> lowest) as usize & ((1 << CLASS_BITS) - 1);
    ((power as usize) << CLASS_BITS) + within
}

impl Column {
    fn add(&mut self, other: Self) {
        self.bytes[0] += other.bytes[0];
        self.bytes[1] += other.bytes[1];
        self.requests += other.requests;
        if self.distances.is_empty() {
            self.distances = other.distances;
        } else {
            for (own, more) in self.distances.iter_mut().zip(other.distances) {
                own.0 += more.0;
                own.1 += more.1;
            }
        }
    }

    fn seek(&mut self, distance: u64) {
        self.distances.resize(CLASSES, (0, 0.0));
        let class = &mut self.distances[class_of(distance)];
        class.0 += 1;
        class.1 += distance as f64;
    }

    /// Distance that half of all do not exceed, as the mean of its class; 0 if they are sequential.
    fn median(&self) -> Option<u64> {
        let half = self.distances.iter().map(|class| u64::from(class.0)).sum::<u64>().div_ceil(2);
        if half == 0 {
            return None;
        }
        let mut sum = 0;
        let found = self.distances.iter().find(|class| {
            sum += u64::from(class.0);
            sum >= half
        })?;
        Some((found.1 / f64::from(found.0)) as u64)
    }
}

/// One column of the strips below the picture.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PlotColumn {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests.
    pub requests: u64,
    /// Distance in bytes that half of the requests do not exceed, within an eighth; none without
    /// requests.
    pub median_seek_bytes: Option<u64>,
}

/// Picture of one device.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DevicePlot {
    /// Device.
    pub device: String,
    /// Requests.
    pub requests: u64,
    /// Share of the requests that begin where the one before ended.
    pub sequential_share: f64,
    /// Places over time; time in nanoseconds since the first request of the trace.
    pub picture: Picture,
    /// Strips, by the picture's columns.
    pub columns: Vec<PlotColumn>,
    /// Requests one after the other: all of them, or every second, fourth, ... one.
    pub moves: Moves,
}

/// Requests that an animation shows; the lists have one length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Moves {
    /// One of so many requests is in the lists.
    pub every: u64,
    /// Time in nanoseconds since the first request of the trace.
    pub times_ns: Vec<u64>,
    /// First byte.
    pub offsets: Vec<u64>,
    /// Bytes; of writes negative.
    pub bytes: Vec<i64>,
}

/// Requests of an animation, at most: nobody sees more of them one by one.
const MOVES_MAX: usize = 1 << 14;

impl Moves {
    fn add(&mut self, number: u64, time: u64, event: &Event) {
        self.every = self.every.max(1);
        if !number.is_multiple_of(self.every) {
            return;
        }
        if self.times_ns.len() == MOVES_MAX {
            thin(&mut self.times_ns);
            thin(&mut self.offsets);
            thin(&mut self.bytes);
            self.every *= 2;
            if !number.is_multiple_of(self.every) {
                return;
            }
        }
        let bytes = i64::from(event.bytes);
        self.times_ns.push(time);
        self.offsets.push(event.sector.saturating_mul(512));
        self.bytes.push(if event.is_write() { -bytes } else { bytes });
    }
}

/// Keeps every second one, from the first on.
fn thin<T: Copy>(list: &mut Vec<T>) {
    let mut index = 0;
    list.retain(|_| {
        index += 1;
        index % 2 == 1
    });
}

/// Pictures of all devices of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TracePlot {
    /// Devices, those with the most requests first.
    pub devices: Vec<DevicePlot>,
    /// Time of the first request on the clock of the trace.
    pub begin_ns: u64,
    /// Time from the first request to the last.
    pub span_ns: u64,
    /// Step at which requests are drawn: issued to the driver, or what the trace has instead.
    pub step: String,
}

struct Drawn {
    density: Density,
    columns: Vec<Column>,
    moves: Moves,
    last_end: Option<u64>,
    requests: u64,
    sequential: u64,
}

impl Drawn {
    fn new() -> Self {
        Self {
            density: Density::new(COLUMNS, ROWS),
            columns: vec![Column::default(); COLUMNS],
            moves: Moves::default(),
            last_end: None,
            requests: 0,
            sequential: 0,
        }
    }

    fn add(&mut self, time: u64, event: &Event) {
        let (offset, bytes) = (event.sector.saturating_mul(512), u64::from(event.bytes));
        let (column, joined) = self.density.add(time, offset, event.is_write());
        for _ in 0..joined {
            halved(&mut self.columns, Column::add, Column::default());
        }
        let column = &mut self.columns[column];
        column.bytes[usize::from(event.is_write())] += bytes;
        column.requests += 1;
        if let Some(last) = self.last_end {
            column.seek(offset.abs_diff(last));
            self.sequential += u64::from(offset == last);
        }
        self.last_end = Some(offset.saturating_add(bytes));
        self.moves.add(self.requests, time, event);
        self.requests += 1;
    }

    fn plot(self, device: String) -> DevicePlot {
        let picture = self.density.picture();
        let width = picture.reads.first().map_or(0, Vec::len);
        let columns = self.columns.iter().take(width).map(|column| PlotColumn {
            read_bytes: column.bytes[0],
            written_bytes: column.bytes[1],
            requests: column.requests,
            median_seek_bytes: column.median(),
        });
        DevicePlot {
            device,
            requests: self.requests,
            sequential_share: self.sequential as f64 / (self.requests.max(2) - 1) as f64,
            columns: columns.collect(),
            picture,
            moves: self.moves,
        }
    }
}

/// Steps at which requests may be drawn, the one nearest to the device first.
const STEPS: [Action; 3] = [Action::Issued, Action::Queued, Action::Completed];

impl TracePlot {
    /// Draws a trace in one pass: the step that is nearest to the device among those it has.
    ///
    /// # Errors
    /// Those of the source.
    pub fn of(source: &mut dyn Source) -> Result<Self, Error> {
        let mut by_step: [HashMap<Device, Drawn>; STEPS.len()] = Default::default();
        let mut event = Event::default();
        let mut begin = None;
        let mut span_ns = 0;
        while source.next(&mut event)? {
            let Some(step) = STEPS.iter().position(|step| *step == event.action) else { continue };
            // A discard moves nothing.
            if event.bytes == 0 || event.categories.has(Categories::DISCARD) {
                continue;
            }
            let time = event.time_ns.saturating_sub(*begin.get_or_insert(event.time_ns));
            span_ns = span_ns.max(time);
            if by_step[step].len() == DEVICES_MAX && !by_step[step].contains_key(&event.device) {
                return Err(Error::Option(format!(
                    "the trace has more than {DEVICES_MAX} devices; name those that are wanted \
                     with --device"
                )));
            }
            by_step[step].entry(event.device).or_insert_with(Drawn::new).add(time, &event);
        }
        let names: HashMap<_, _> = source.titles().into_iter().collect();
        let name_of =
            |device: Device| names.get(&device).cloned().unwrap_or_else(|| device.to_string());
        let step = by_step.iter().position(|drawn| !drawn.is_empty()).unwrap_or(0);
        let drawn = std::mem::take(&mut by_step[step]);
        let mut devices: Vec<_> =
            drawn.into_iter().map(|(device, drawn)| drawn.plot(name_of(device))).collect();
        devices.sort_by(|one, other| {
            other.requests.cmp(&one.requests).then_with(|| one.device.cmp(&other.device))
        });
        let words = ["issued to the driver", "entered the queue", "completed"];
        Ok(Self { devices, begin_ns: begin.unwrap_or(0), span_ns, step: words[step].to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Caveat;

    struct Given(Vec<Event>);

    impl Source for Given {
        fn next(&mut self, event: &mut Event) -> Result<bool, Error> {
            let Some(next) = self.0.pop() else { return Ok(false) };
            *event = next;
            Ok(true)
        }

        fn caveats(&self) -> &[Caveat] {
            &[]
        }
    }

    #[test]
    fn moves_of_a_long_trace_are_evenly_thinned() {
        let event = |at: u64| Event {
            time_ns: at,
            sector: at * 8,
            bytes: 4096,
            action: Action::Issued,
            ..Event::default()
        };
        let plot = TracePlot::of(&mut Given((0..100_000).rev().map(event).collect())).unwrap();
        let moves = &plot.devices[0].moves;
        assert_eq!(moves.every, 8);
        assert!(moves.times_ns.windows(2).all(|pair| pair[1] - pair[0] == 8));
        assert_eq!(moves.times_ns.len(), 100_000_usize.div_ceil(8));
    }

    #[test]
    fn strips_have_the_bytes_and_distances_of_their_columns() {
        let event = |at: u64| Event {
            time_ns: 5000 + at * 1_000_000,
            sector: if at.is_multiple_of(2) { at * 8 } else { 1 << 20 },
            bytes: 4096,
            action: Action::Issued,
            ..Event::default()
        };
        let events: Vec<Event> = (0..4000).rev().map(event).collect();
        let plot = TracePlot::of(&mut Given(events)).unwrap();
        let device = &plot.devices[0];
        let bytes: u64 = device.columns.iter().map(|column| column.read_bytes).sum();
        assert_eq!((bytes, device.requests), (4000 * 4096, 4000));
        assert_eq!(device.columns.len(), device.picture.reads[0].len());
        assert!(device.columns.len() <= COLUMNS);
        assert_eq!(plot.span_ns, 3999 * 1_000_000);
        assert_eq!((device.moves.every, device.moves.times_ns.len()), (1, 4000));
        let middle = &device.columns[device.columns.len() / 2];
        assert!(middle.median_seek_bytes >= Some(1 << 28));
        // No median is farther than the farthest: one request of two goes to the other end.
        let farthest = (1 << 20) * 512;
        assert!(device.columns.iter().all(|column| column.median_seek_bytes < Some(farthest)));
    }

    #[test]
    fn a_median_distance_is_within_an_eighth() {
        for distance in [0, 1, 2, 7, 8, 9, 4096, 65_537, 389 << 20, u64::MAX] {
            let mut column = Column::default();
            column.seek(distance);
            let (found, wanted) = (column.median().unwrap() as f64, distance as f64);
            assert!((found - wanted).abs() <= wanted / 1e9, "{distance}: {found}");
        }
        let mut column = Column::default();
        (1000..2000).for_each(|distance| column.seek(distance));
        let median = column.median().unwrap();
        assert!((1500 - 1500 / 8..=1500 + 1500 / 8).contains(&median), "{median}");
    }
}
