//! One client: draws, calls the store, looks at the clock, counts.

use std::sync::Mutex;
use std::time::Duration;

use iolab_model::Ns;
use iolab_model::kv::{KvError, KvStore};
use iolab_model::op::OpClass;
use iolab_workload::kv::codec::{Fields, is_intact};
use iolab_workload::kv::{
    FieldChoice, KvAction, KvClient, KvCounts, KvEnd, KvLength, KvRequest, KvSeries, KvStage,
    KvStatus,
};

use super::log::{KvLog, fields_text};
use crate::recorder::Recorder;

/// Longest sleep of a client that waits for its turn: it may be stopped meanwhile.
const NAP: Ns = Ns::from_ms(50);
/// Targets of more operations per second and client begin at once.
pub const FAST_PER_S: f64 = 1000.0;

/// A client at work.
pub struct Session<'a, S> {
    pub store: &'a S,
    pub stage: &'a KvStage,
    pub client: KvClient,
    pub counts: KvCounts,
    pub recorder: Recorder,
    /// The same counts since the last line about the progress, if there are such lines.
    pub live: Option<&'a Mutex<KvCounts>>,
    pub log: Option<KvLog>,
    /// The log says what would be done, and nothing else is.
    pub is_printing: bool,
    pub now: fn() -> Ns,
    /// Operations that ended, and bytes that they moved.
    pub done: u64,
    pub bytes: (u64, u64),
    pub failures: u64,
    pub mismatches: u64,
    pub first_error: Option<String>,
    value: Vec<u8>,
    record: Vec<u8>,
    scratch: Vec<u8>,
}

impl<'a, S: KvStore> Session<'a, S> {
    /// A client that has done nothing yet.
    pub fn new(
        (store, stage): (&'a S, &'a KvStage),
        (client, recorder): (KvClient, Recorder),
        now: fn() -> Ns,
    ) -> Self {
        let mut counts = KvCounts::new(&client.work().measured);
        let mix = client.work().mix;
        let is_load = client.work().action == KvAction::Load;
        let expected = [
            (mix.read + mix.read_modify_write, KvSeries::Read),
            (mix.update + mix.read_modify_write, KvSeries::Update),
            (mix.insert, KvSeries::Insert),
            (mix.scan, KvSeries::Scan),
            (mix.read_modify_write, KvSeries::ReadModifyWrite),
        ];
        for (weight, series) in expected {
            let occurs = if is_load { series == KvSeries::Insert } else { weight > 0.0 };
            if occurs {
                counts.expect(series);
            }
        }
        let room = || Vec::with_capacity(4096);
        Self {
            store,
            stage,
            client,
            counts,
            recorder,
            live: None,
            log: None,
            is_printing: false,
            now,
            done: 0,
            bytes: (0, 0),
            failures: 0,
            mismatches: 0,
            first_error: None,
            value: room(),
            record: room(),
            scratch: room(),
        }
    }

    /// Performs operations until there are no more, or it is stopped; answers the last reading of
    /// the clock.
    pub fn run(&mut self, operations: u64, clients: u32, is_stopped: impl Fn() -> bool) -> Ns {
        let work = self.client.work();
        let (is_load, limit_s) = (work.action == KvAction::Load, work.time_limit_s);
        let tick = (work.target_per_s > 0.0)
            .then(|| f64::from(clients) / work.target_per_s * 1e9)
            .filter(|tick| tick.is_finite());
        let endless = operations == 0;
        let mut began = (self.now)();
        if let Some(tick) = tick
            && tick >= 1e9 / FAST_PER_S
        {
            // Clients do not begin together.
            let first = Ns((self.client.unit() * tick) as u64);
            self.wait_until(began + first, &is_stopped);
            began = (self.now)();
        }
        let mut last = began;
        let deadline = if limit_s == 0 { Ns::MAX } else { began + Ns(limit_s * 1_000_000_000) };
        let mut intended = tick.map(|_| began);
        while (endless || self.done < operations) && !is_stopped() && last < deadline {
            let goes_on = if is_load { self.load_one(intended) } else { self.perform(intended) };
            self.done += 1;
            last = (self.now)();
            if self.live.is_some() {
                self.stage.add_done(1);
            }
            if !goes_on {
                break;
            }
            if let Some(tick) = tick {
                let turn = began + Ns((self.done as f64 * tick) as u64);
                if endless || self.done < operations {
                    self.wait_until(turn.min(deadline), &is_stopped);
                }
                intended = Some(turn);
            }
        }
        last
    }

    fn wait_until(&self, instant: Ns, is_stopped: impl Fn() -> bool) {
        loop {
            let now = (self.now)();
            if now >= instant || is_stopped() {
                return;
            }
            if self.client.work().is_spinning {
                core::hint::spin_loop();
            } else {
                crate::clock::sleep_until((now + NAP).min(instant));
            }
        }
    }

    /// Loads the next record; false: it failed for good.
    fn load_one(&mut self, intended: Option<Ns>) -> bool {
        let number = self.stage.fresh();
        self.client.set_key(number);
        let mut left = self.client.work().insert_retries;
        loop {
            let end = self.insert(intended);
            self.count(OpClass::Write, end.began, end.ended, self.record.len() as u64);
            if end.status == KvStatus::Ok {
                return true;
            }
            if left == 0 {
                return self.client.work().goes_on_after_errors;
            }
            left -= 1;
            std::thread::sleep(Duration::from_secs_f64(self.client.retry_pause_s()));
        }
    }

    /// Performs the next operation.
    fn perform(&mut self, intended: Option<Ns>) -> bool {
        let (request, number) = self.client.next(self.stage);
        match request {
            KvRequest::Read(which) => {
                let end = self.read(which, intended);
                self.count(OpClass::Read, end.began, end.ended, self.value.len() as u64);
                self.verify(which, end.status);
            }
            KvRequest::Update(which) => {
                self.client.write_fields(which, &mut self.record);
                let end = self.update(intended);
                self.count(OpClass::Write, end.began, end.ended, self.value.len() as u64);
            }
            KvRequest::Insert => {
                let end = self.insert(intended);
                self.stage.acknowledge(number);
                self.count(OpClass::Write, end.began, end.ended, self.record.len() as u64);
            }
            KvRequest::Scan(count, which) => self.scan(count, which, intended),
            KvRequest::ReadModifyWrite(read, written) => {
                self.client.write_fields(written, &mut self.record);
                let first = self.read(read, intended);
                self.verify_later(read, first.status, |session| {
                    let last = session.update(intended);
                    let end = KvEnd { began: first.began, intended: first.intended, ..last };
                    session.latency(KvSeries::ReadModifyWrite, &end, 0);
                    let moved = 2 * session.value.len() as u64;
                    session.count(OpClass::Write, end.began, end.ended, moved);
                });
            }
        }
        true
    }

    fn read(&mut self, which: FieldChoice, intended: Option<Ns>) -> KvEnd {
        if self.is_printing {
            self.print_read("READ", None, which);
        }
        let began = (self.now)();
        let found = self.store.get(self.client.key(), &mut self.value);
        let fields = self.client.fields();
        let status = match found {
            Ok(true) if self.is_printing || fields.holds(&self.value, which) => KvStatus::Ok,
            Ok(true) => KvStatus::Error,
            Ok(false) => KvStatus::NotFound,
            Err(error) => self.failed(error),
        };
        let end = self.end(status, began, intended);
        self.bytes.0 += self.value.len() as u64;
        self.ended(KvSeries::Read, &end, self.value.len() as u64);
        end
    }

    /// Writes the fields of `self.record` into the record of the key.
    fn update(&mut self, intended: Option<Ns>) -> KvEnd {
        if self.is_printing {
            self.print_written("UPDATE");
        }
        let began = (self.now)();
        let found = self.store.get(self.client.key(), &mut self.value);
        let status = match found {
            Ok(true) => {
                Fields::merge(&mut self.value, &self.record, &mut self.scratch);
                match self.store.put(self.client.key(), &self.value) {
                    Ok(()) => KvStatus::Ok,
                    Err(error) => self.failed(error),
                }
            }
            Ok(false) => KvStatus::NotFound,
            Err(error) => self.failed(error),
        };
        let end = self.end(status, began, intended);
        if status == KvStatus::Ok {
            self.bytes.1 += (self.value.len() + self.client.key().len()) as u64;
        }
        self.ended(KvSeries::Update, &end, self.value.len() as u64);
        end
    }

    /// Puts a whole record under the key.
    fn insert(&mut self, intended: Option<Ns>) -> KvEnd {
        self.client.write_fields(FieldChoice::All, &mut self.record);
        if self.is_printing {
            self.print_written("INSERT");
        }
        let began = (self.now)();
        let status = match self.store.put(self.client.key(), &self.record) {
            Ok(()) => KvStatus::Ok,
            Err(error) => self.failed(error),
        };
        let end = self.end(status, began, intended);
        if status == KvStatus::Ok {
            self.bytes.1 += (self.record.len() + self.client.key().len()) as u64;
        }
        self.ended(KvSeries::Insert, &end, self.record.len() as u64);
        end
    }

    fn scan(&mut self, count: u32, which: FieldChoice, intended: Option<Ns>) {
        if self.is_printing {
            self.print_read("SCAN", Some(count), which);
        }
        let began = (self.now)();
        let (mut bytes, mut is_whole) = (0, true);
        let fields = self.client.fields();
        let scanned = self.store.scan(self.client.key(), count, &mut |_, value| {
            is_whole &= fields.holds(value, which);
            bytes += value.len() as u64;
        });
        let status = match scanned {
            Ok(_) if is_whole => KvStatus::Ok,
            Ok(_) => KvStatus::Error,
            Err(error) => self.failed(error),
        };
        let end = self.end(status, began, intended);
        self.bytes.0 += bytes;
        self.ended(KvSeries::Scan, &end, bytes);
        self.count(OpClass::Read, end.began, end.ended, bytes);
    }

    /// Compares what was read with what must have been written.
    fn verify(&mut self, which: FieldChoice, read: KvStatus) {
        self.verify_later(which, read, |_| {});
    }

    /// The same, after something else was done.
    fn verify_later(
        &mut self,
        which: FieldChoice,
        read: KvStatus,
        between: impl FnOnce(&mut Self),
    ) {
        if !self.client.work().is_verified {
            return between(self);
        }
        let seen = self.value.clone();
        between(self);
        let began = (self.now)();
        let KvLength::Constant { length } = self.client.work().field_length else { return };
        let (fields, key) = (self.client.fields(), self.client.key());
        let status = match read {
            KvStatus::Ok if is_intact(fields, key, &seen, which, length as usize) => KvStatus::Ok,
            KvStatus::Ok => KvStatus::UnexpectedState,
            _ => KvStatus::Error,
        };
        self.mismatches += u64::from(status == KvStatus::UnexpectedState);
        let end = self.end(status, began, None);
        self.ended(KvSeries::Verify, &end, 0);
    }

    fn failed(&mut self, error: KvError) -> KvStatus {
        self.first_error.get_or_insert(error.0);
        KvStatus::Error
    }

    #[inline]
    fn end(&self, status: KvStatus, began: Ns, intended: Option<Ns>) -> KvEnd {
        let ended = (self.now)();
        KvEnd { status, intended: intended.unwrap_or(began).min(began), began, ended }
    }

    /// Counts an operation of the whole, for iolab's own record.
    fn count(&mut self, class: OpClass, began: Ns, ended: Ns, bytes: u64) {
        self.recorder.count(class, began, ended, bytes);
    }

    /// Counts a call with a result.
    #[inline]
    fn ended(&mut self, series: KvSeries, end: &KvEnd, bytes: u64) {
        self.failures += u64::from(end.status != KvStatus::Ok);
        self.counts.record(series, end, bytes);
        self.tell(series, end, |counts| counts.record(series, end, bytes));
    }

    /// Counts a latency without a result.
    pub fn latency(&mut self, series: KvSeries, end: &KvEnd, bytes: u64) {
        self.counts.record_latency(series, end, bytes);
        self.tell(series, end, |counts| counts.record_latency(series, end, bytes));
    }

    #[inline]
    fn tell(&mut self, series: KvSeries, end: &KvEnd, count: impl FnOnce(&mut KvCounts)) {
        if let Some(live) = self.live {
            count(&mut live.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        }
        if let (Some(log), false) = (&mut self.log, self.is_printing) {
            log.latency(series.name(), end);
        }
    }

    fn print_read(&mut self, word: &str, count: Option<u32>, which: FieldChoice) {
        let text = fields_text(self.client.fields(), which);
        let (key, table) = (self.client.key(), &self.client.work().store.table);
        if let Some(log) = &mut self.log {
            log.read((word, table, key), count, &text);
        }
    }

    fn print_written(&mut self, word: &str) {
        let (key, table) = (self.client.key(), &self.client.work().store.table);
        if let Some(log) = &mut self.log {
            log.written((word, table, key), self.client.fields(), &self.record);
        }
    }
}
