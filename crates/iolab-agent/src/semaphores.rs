//! bonnie++'s System V semaphores, by which copies of it begin each phase together.
//!
//! Key, number, mode and order of operations are the program's (2.00a, traced), so copies of it and
//! of ours can wait for each other. One semaphore per phase is set to the number of copies; a copy
//! takes one off and waits for zero. Left out: setting a semaphore back, so a set serves once.

use std::io;

/// `-p` and `-y s` of bonnie++ 2.00a.
const KEY: libc::key_t = 4711;
/// One for each phase.
const COUNT: i32 = 12;
const MODE: i32 = 0o666;
/// Between two questions whether to stop.
const LOOK: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Copies at most: the kernel's largest value (include/uapi/linux/sem.h: SEMVMX).
const COPIES_MAX: u32 = 32_767;

// SAFETY: as declared in sys/sem.h of glibc and musl; the crate libc has only semop.
unsafe extern "C" {
    fn semtimedop(
        set: libc::c_int,
        operations: *mut libc::sembuf,
        count: libc::size_t,
        time: *const libc::timespec,
    ) -> libc::c_int;
}

/// The set, known by its number.
#[derive(Clone, Copy, Debug)]
pub struct Set(i32);

/// End of the waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// All have arrived.
    Together,
    /// Stopped on request.
    Stopped,
}

/// Command line of the agent: `make N` or `remove`.
pub fn command(words: &[&str]) -> Result<(), String> {
    match words {
        ["make", copies] => {
            let copies =
                copies.parse().map_err(|_| format!("'{copies}' is no number of copies"))?;
            Set::make(copies).map(drop)
        }
        ["remove"] => Set::find()?.remove(),
        _ => Err("write `semaphores make N` or `semaphores remove`".into()),
    }
}

impl Set {
    /// Makes the set, or sets the one that exists anew, for so many copies.
    pub fn make(copies: u32) -> Result<Self, String> {
        if !(1..=COPIES_MAX).contains(&copies) {
            return Err(format!("{copies} copies: use 1 to {COPIES_MAX}"));
        }
        let set = get(libc::IPC_CREAT | MODE)
            .map_err(|error| format!("the semaphores cannot be made: {error}"))?;
        for number in 0..COUNT {
            // SAFETY: SETVAL takes an int as fourth argument and no pointer.
            let done = unsafe { libc::semctl(set.0, number, libc::SETVAL, copies as libc::c_int) };
            check(done).map_err(|error| format!("semaphore {number} cannot be set: {error}"))?;
        }
        Ok(set)
    }

    /// The set that somebody made.
    pub fn find() -> Result<Self, String> {
        get(MODE).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT) => "there are no semaphores: make them first, with \
                                   `iolab bonnie++ -p N` for N copies"
                .to_owned(),
            _ => format!("the semaphores cannot be used: {error}"),
        })
    }

    /// Removes the set; whoever waits is told.
    pub fn remove(self) -> Result<(), String> {
        // SAFETY: IPC_RMID takes no fourth argument.
        let done = unsafe { libc::semctl(self.0, 0, libc::IPC_RMID) };
        check(done).map_err(|error| format!("the semaphores cannot be removed: {error}"))
    }

    /// Takes one off a semaphore and waits until it is zero.
    pub fn pass(self, number: u16, should_stop: impl Fn() -> bool) -> Result<Passed, String> {
        let flag = libc::IPC_NOWAIT as libc::c_short;
        let taken = self.operate(libc::sembuf { sem_num: number, sem_op: -1, sem_flg: flag });
        taken.map_err(|error| match error.raw_os_error() {
            Some(libc::EAGAIN) => format!(
                "semaphore {number} is at zero: more copies than `-p N` said, or a set that was \
                 used before; `iolab bonnie++ -p N` sets it anew"
            ),
            _ => lost(&error),
        })?;
        loop {
            let wait = libc::sembuf { sem_num: number, sem_op: 0, sem_flg: 0 };
            match self.operate(wait) {
                Ok(()) => return Ok(Passed::Together),
                Err(_) if should_stop() => return Ok(Passed::Stopped),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EINTR) => {}
                    _ => return Err(lost(&error)),
                },
            }
        }
    }

    fn operate(self, mut operation: libc::sembuf) -> io::Result<()> {
        let look = LOOK;
        // SAFETY: one operation and one time, both alive during the call.
        check(unsafe { semtimedop(self.0, &raw mut operation, 1, &raw const look) })
    }
}

fn get(flags: i32) -> io::Result<Set> {
    // SAFETY: semget takes no pointers.
    let number = unsafe { libc::semget(KEY, COUNT, flags) };
    check(number).map(|()| Set(number))
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn lost(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EIDRM | libc::EINVAL) => {
            "the semaphores were removed while this copy waited".into()
        }
        _ => format!("waiting for the other copies failed: {error}"),
    }
}
