//! The system calls that no safe wrapper offers, each in one small function.
//!
//! Left out: everything that `std` or `nix` can do without `unsafe`.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

pub mod bpf;
mod inherited;
pub mod perf;

pub use inherited::{allow_many_files, harden};

static IS_TERMINATED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_termination(_: libc::c_int) {
    IS_TERMINATED.store(true, Ordering::Relaxed);
}

/// Lowest nice value: setpriority(2).
const HIGHEST_PRIORITY: libc::c_int = -20;

/// Tell whether SIGTERM has arrived since [`adopt_signals`].
pub fn is_terminated() -> bool {
    IS_TERMINATED.load(Ordering::Relaxed)
}

/// SIGINT, SIGHUP and SIGPIPE are ignored, SIGTERM is noted and interrupts a poll. All others are
/// as usual, whatever the caller did: without SIGCHLD nobody learns how a child ended.
pub fn adopt_signals() -> io::Result<()> {
    inherited::usual_signals()?;
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    let note =
        SigAction::new(SigHandler::Handler(note_termination), SaFlags::empty(), SigSet::empty());
    let pairs = [
        (Signal::SIGINT, &ignore),
        (Signal::SIGHUP, &ignore),
        (Signal::SIGPIPE, &ignore),
        (Signal::SIGTERM, &note),
    ];
    for (signal, action) in pairs {
        // SAFETY: the handler only stores to an atomic, which is async-signal-safe.
        unsafe { sigaction(signal, action) }?;
    }
    Ok(())
}

/// Lets this process run before those of usual priority, if it may: whoever empties a buffer of
/// bounded size must not wait for its turn among many workers.
pub fn run_before_others() {
    // SAFETY: setpriority takes no pointers; without the right it fails and changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, HIGHEST_PRIORITY) };
}

/// Lets the command die with its parent, so that nothing holds our mount namespace after us.
pub fn die_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let prepare = move || {
        // SAFETY: prctl and getppid are async-signal-safe and take no pointers here.
        let is_orphan = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
                || libc::getppid().cast_unsigned() != parent
        };
        // The parent may have died before the request took effect.
        if is_orphan { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    };
    // SAFETY: the closure allocates nothing and calls async-signal-safe functions only.
    unsafe { command.pre_exec(prepare) };
}

/// Leaves these descriptors open in the command.
pub fn inherit(command: &mut Command, descriptors: Vec<std::os::fd::RawFd>) {
    let keep = move || {
        for descriptor in &descriptors {
            // SAFETY: fcntl with F_SETFD is async-signal-safe and takes no pointer.
            if unsafe { libc::fcntl(*descriptor, libc::F_SETFD, 0) } < 0 {
                return Err(last_error());
            }
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and calls async-signal-safe functions only.
    unsafe { command.pre_exec(keep) };
}

/// Gives the command a session of its own, so that signals to our group do not reach it.
pub fn own_session(command: &mut Command) {
    // SAFETY: setsid is async-signal-safe; it cannot fail in a child that leads no group.
    unsafe { command.pre_exec(|| if libc::setsid() < 0 { Err(last_error()) } else { Ok(()) }) };
}

/// Lets the command begin in another mount namespace.
pub fn in_mount_namespace(command: &mut Command, namespace: File) {
    let enter = move || {
        // SAFETY: setns is one system call on a descriptor that the closure owns.
        let entered = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNS) };
        check(entered)
    };
    // SAFETY: the closure allocates nothing and calls an async-signal-safe function only.
    unsafe { command.pre_exec(enter) };
}

/// Takes over standard input.
pub fn standard_input() -> OwnedFd {
    // SAFETY: descriptor 0 is open in every process that was started properly, and nobody else in
    // this program uses it: this is called once, at the start of `serve`.
    unsafe { OwnedFd::from_raw_fd(libc::STDIN_FILENO) }
}

// include/uapi/linux/loop.h: LOOP_CTL_ADD, LOOP_CTL_REMOVE, LOOP_CONFIGURE, LOOP_CLR_FD.
const LOOP_CTL_ADD: u64 = 0x4C80;
const LOOP_CTL_REMOVE: u64 = 0x4C81;
const LOOP_CONFIGURE: u64 = 0x4C0A;
const LOOP_CLR_FD: u64 = 0x4C01;
// include/uapi/linux/loop.h: LO_FLAGS_AUTOCLEAR, LO_FLAGS_DIRECT_IO, LO_NAME_SIZE.
const LO_FLAGS_AUTOCLEAR: u32 = 4;
const LO_FLAGS_DIRECT_IO: u32 = 16;
const LO_NAME_SIZE: usize = 64;

/// include/uapi/linux/loop.h: struct `loop_info64`.
#[repr(C)]
struct LoopInfo64 {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; LO_NAME_SIZE],
    crypt_name: [u8; LO_NAME_SIZE],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// include/uapi/linux/loop.h: struct `loop_config`.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo64,
    reserved: [u64; 8],
}

/// Adds loop device `number`; EEXIST if there is one.
pub fn add_loop(control: &File, number: u32) -> io::Result<()> {
    // SAFETY: this request takes an integer.
    check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_ADD, libc::c_ulong::from(number)) })
}

/// Removes loop device `number`; EBUSY while it is open or bound.
pub fn remove_loop(control: &File, number: u32) -> io::Result<()> {
    // SAFETY: this request takes an integer.
    check(unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_REMOVE, libc::c_ulong::from(number)) })
}

/// Detaches a loop device, at the latest when its last user closes it.
pub fn detach_loop(device: &File) -> io::Result<()> {
    // SAFETY: this request ignores its argument.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD, 0) })
}

/// Attaches `image` to a loop device: direct, detached by itself at the last close, and with `name`
/// as the file name that tools show.
pub fn attach_loop(device: &File, image: &File, block_bytes: u32, name: &str) -> io::Result<()> {
    let mut file_name = [0; LO_NAME_SIZE];
    let bytes = name.as_bytes();
    let length = bytes.len().min(LO_NAME_SIZE - 1);
    file_name[..length].copy_from_slice(&bytes[..length]);
    let config = LoopConfig {
        fd: image.as_raw_fd().cast_unsigned(),
        block_size: block_bytes,
        info: LoopInfo64 {
            device: 0,
            inode: 0,
            rdevice: 0,
            offset: 0,
            sizelimit: 0,
            number: 0,
            encrypt_type: 0,
            encrypt_key_size: 0,
            flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
            file_name,
            crypt_name: [0; LO_NAME_SIZE],
            encrypt_key: [0; 32],
            init: [0; 2],
        },
        reserved: [0; 8],
    };
    // SAFETY: `config` has the kernel's layout (checked in a test) and outlives the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) })
}

// include/uapi/linux/loop.h: LOOP_GET_STATUS64.
const LOOP_GET_STATUS64: u64 = 0x4C05;

/// Image of a loop device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopImage {
    /// Device on which the image lies, as in `st_dev`.
    pub dev: u64,
    /// Inode of the image.
    pub inode: u64,
    /// The image itself, as in `st_rdev`, if it is a device.
    pub rdev: u64,
}

/// The image behind a loop device, by whatever name it was attached; an error for any other device.
pub fn loop_image(device: &File) -> io::Result<LoopImage> {
    // SAFETY: the structure is plain data, for which all zeroes is a valid value.
    let mut info: LoopInfo64 = unsafe { std::mem::zeroed() };
    let request = LOOP_GET_STATUS64;
    // SAFETY: the kernel writes one structure of this layout (checked in a test) to `info`.
    check(unsafe { libc::ioctl(device.as_raw_fd(), request, &raw mut info) })?;
    let LoopInfo64 { device, inode, rdevice, .. } = info;
    Ok(LoopImage { dev: from_kernel(device), inode, rdev: from_kernel(rdevice) })
}

/// A device number as the kernel packs it (`include/linux/kdev_t.h`, `huge_encode_dev`), as stat
/// shows it.
fn from_kernel(number: u64) -> u64 {
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    nix::sys::stat::makedev(major, minor)
}

/// Size of a drive's health log (NVM Express base specification 2.0, 5.16.1.3).
pub const NVME_HEALTH_BYTES: usize = 512;

/// `include/uapi/linux/nvme_ioctl.h`: struct `nvme_passthru_cmd`.
#[repr(C)]
#[derive(Default)]
struct NvmeCommand {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_length: u32,
    data_length: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// The health log of an `NVMe` drive; it only reads.
pub fn nvme_health(device: &File) -> io::Result<[u8; NVME_HEALTH_BYTES]> {
    // include/uapi/linux/nvme_ioctl.h: NVME_IOCTL_ADMIN_CMD. Opcode 2 is Get Log Page, log 2 the
    // health log; its length is in words of 4 bytes, less one.
    const ADMIN_COMMAND: u64 = 0xC048_4E41;
    let mut log = [0_u8; NVME_HEALTH_BYTES];
    let length = NVME_HEALTH_BYTES as u32;
    let mut command = NvmeCommand {
        opcode: 2,
        namespace: u32::MAX,
        address: log.as_mut_ptr() as u64,
        data_length: length,
        words_10_15: [2 | (length / 4 - 1) << 16, 0, 0, 0, 0, 0],
        ..NvmeCommand::default()
    };
    // SAFETY: `command` has the kernel's layout (checked in a test), and `log` is as long as it
    // says; both outlive the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), ADMIN_COMMAND, &raw mut command) })?;
    Ok(log)
}

/// A file system that needs no device, attached to nothing but the descriptor (fsopen(2), Linux
/// 5.2): it ends when that is closed.
pub fn open_file_system(kind: &std::ffi::CStr) -> io::Result<OwnedFd> {
    // include/uapi/linux/mount.h: FSOPEN_CLOEXEC, FSCONFIG_CMD_CREATE, FSMOUNT_CLOEXEC.
    const CLOSE_ON_EXEC: libc::c_uint = 1;
    const CREATE: libc::c_uint = 6;
    let owned = |number: libc::c_long| {
        if number < 0 {
            return Err(last_error());
        }
        // SAFETY: the kernel has just opened this descriptor for us.
        Ok(unsafe { OwnedFd::from_raw_fd(number as libc::c_int) })
    };
    // SAFETY: `kind` is a string that ends with a zero and outlives the call.
    let context = owned(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOSE_ON_EXEC) })?;
    let (no_text, fd) = (std::ptr::null::<libc::c_char>(), context.as_raw_fd());
    // SAFETY: this command takes neither key nor value.
    let made = unsafe { libc::syscall(libc::SYS_fsconfig, fd, CREATE, no_text, no_text, 0) };
    check(made as libc::c_int)?;
    // SAFETY: the call takes numbers only.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, fd, CLOSE_ON_EXEC, 0) })
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(last_error()) } else { Ok(()) }
}

fn last_error() -> io::Error {
    io::Error::last_os_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_devices_are_unpacked() {
        let unpacked = |number| {
            let number = from_kernel(number);
            (nix::sys::stat::major(number), nix::sys::stat::minor(number))
        };
        assert_eq!(unpacked(0x0000_0811), (8, 0x11));
        assert_eq!(unpacked(0x1230_fe45), (0xfe, 0x12345));
        assert_eq!(from_kernel(0), 0);
    }

    #[test]
    fn structures_have_the_kernels_sizes() {
        assert_eq!(size_of::<LoopInfo64>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 8 + 232 + 64);
        assert_eq!(size_of::<NvmeCommand>(), 72);
    }
}
