//! Engines where the kernel or a container forbids them: they say so, and nothing falls back.

use iolab_real::Engine;

/// Lets a thread of its own run `body` while a system call answers with an errno, as it does in a
/// container with a seccomp profile.
fn without<T: Send>(call: libc::c_long, errno: i32, body: impl FnOnce() -> T + Send) -> T {
    let statement = |code: u32, jumps: (u8, u8), k: u32| libc::sock_filter {
        code: code as u16,
        jt: jumps.0,
        jf: jumps.1,
        k,
    };
    // Linux include/uapi/linux/seccomp.h: the number of the call is the first word.
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, (0, 0), 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, (0, 1), call as u32),
        statement(libc::BPF_RET | libc::BPF_K, (0, 0), libc::SECCOMP_RET_ERRNO | errno as u32),
        statement(libc::BPF_RET | libc::BPF_K, (0, 0), libc::SECCOMP_RET_ALLOW),
    ];
    let run = move || {
        let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        // SAFETY: the program and its filter live during the calls; they concern this thread only.
        let installed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        assert_eq!(installed, 0, "this kernel has seccomp filters");
        body()
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap())
}

#[test]
fn a_container_that_forbids_io_uring_is_named_and_the_others_work() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        without(libc::SYS_io_uring_setup, errno, || {
            for &engine in Engine::ALL {
                let found = engine.probe(&[]);
                if engine.name().starts_with("io_uring") {
                    let refused = found.unwrap_err();
                    assert!(refused.why.starts_with("io_uring_setup: "), "{refused:?}");
                    assert!(refused.remedy.contains("psync"), "{refused:?}");
                } else if engine != Engine::Libaio {
                    assert_eq!(found, Ok(()), "{engine}");
                }
            }
        });
    }
}

#[test]
fn a_kernel_without_libaio_is_named() {
    let refused = without(libc::SYS_io_setup, libc::ENOSYS, || Engine::Libaio.probe(&[]));
    let refused = refused.unwrap_err();
    assert!(refused.why.contains("io_setup") && refused.remedy.contains("--engine io_uring"));
}

/// A limit that only a part of an engine's set-up meets.
#[test]
fn buffers_that_cannot_be_registered_are_named() {
    let refused = without(libc::SYS_io_uring_register, libc::ENOMEM, || {
        (Engine::IoUring.probe(&[]), Engine::IoUringFixed.probe(&[]))
    });
    assert_eq!(refused.0, Ok(()), "io_uring registers nothing");
    let remedy = refused.1.unwrap_err().remedy;
    assert!(remedy.contains("RLIMIT_MEMLOCK") && remedy.contains("smaller depth"), "{remedy}");
}
