//! A store that keeps nothing: every key has an empty value, every write succeeds.
//!
//! The printing store of YCSB (`basic`) is this, with a delay before each answer if one is asked
//! for; its lines are the client's.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use iolab_model::kv::{KvError, KvOptions, KvStore};
use iolab_model::{Error, Seed};

/// The store.
#[derive(Debug, Default)]
pub struct NoStore {
    delay: Duration,
    is_random: bool,
    calls: AtomicU64,
}

impl NoStore {
    /// With the delay that the options name.
    ///
    /// # Errors
    ///
    /// An option is none of its own.
    pub fn new(options: &KvOptions) -> Result<Self, Error> {
        let mut made = Self::default();
        for option in &options.options {
            match option.name.as_str() {
                "simulatedelay" => {
                    let ms =
                        option.value.parse().map_err(|_| wrong(&option.name, &option.value))?;
                    made.delay = Duration::from_millis(ms);
                }
                "randomizedelay" => made.is_random = option.value != "false",
                name => return Err(wrong(name, &option.value)),
            }
        }
        Ok(made)
    }

    fn pause(&self) {
        if self.delay.is_zero() {
            return;
        }
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let share = if self.is_random { Seed(1).stream("delay", call).unit() } else { 1.0 };
        std::thread::sleep(self.delay.mul_f64(share));
    }
}

fn wrong(name: &str, value: &str) -> Error {
    Error::BadWorkload {
        problem: format!("the store that keeps nothing takes no {name}={value}"),
        remedy: "use simulatedelay with whole milliseconds, or leave it out".into(),
    }
}

impl KvStore for NoStore {
    fn name(&self) -> &'static str {
        "null"
    }

    fn is_new(&self) -> bool {
        false
    }

    fn get(&self, _: &[u8], value: &mut Vec<u8>) -> Result<bool, KvError> {
        self.pause();
        value.clear();
        Ok(true)
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<(), KvError> {
        self.pause();
        Ok(())
    }

    fn delete(&self, _: &[u8]) -> Result<(), KvError> {
        self.pause();
        Ok(())
    }

    fn scan(&self, _: &[u8], _: u32, _: &mut dyn FnMut(&[u8], &[u8])) -> Result<u32, KvError> {
        self.pause();
        Ok(0)
    }

    fn close(self) -> Result<(), KvError> {
        Ok(())
    }
}
