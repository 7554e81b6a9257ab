//! The process itself: cloned into its name spaces, held until its parent has set it up, executed.
#![allow(
    unsafe_code,
    reason = "between clone3(2) and execve(2) only system calls are allowed, and no crate wraps those"
)]

use std::ffi::CString;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::Pid;

use super::LaunchError;

/// All that a child needs, made before it exists: it must not allocate.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) path: CString,
    pub(super) argv: Vec<CString>,
    pub(super) environment: Vec<CString>,
    /// Become 3, 4, and so on; nothing else above 2 is inherited but what the caller left open on purpose.
    pub(super) descriptors: Vec<OwnedFd>,
    /// Flags of clone3(2).
    pub(super) namespaces: libc::c_int,
    /// In a session of its own.
    pub(super) session: bool,
    /// Becomes user and group 0 of its name space.
    pub(super) become_root: bool,
    /// Capabilities that the program keeps though it is not user 0, as a mask; 0 for none. Of the first 32.
    pub(super) ambient: u32,
    /// Standard error, instead of none.
    pub(super) error: Option<OwnedFd>,
}

/// A process that waits to be told to execute its program.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) pid: Pid,
    pub(super) pidfd: OwnedFd,
    /// Ours of a pair: its end of file lets the child go; what comes back is the errno of a step that failed.
    hold: UnixStream,
}

impl Held {
    /// Lets it execute its program, and waits until it has.
    pub(super) fn go(self) -> Result<(Pid, OwnedFd), LaunchError> {
        let Self { pid, pidfd, mut hold } = self;
        let mut report = [0; 8];
        let told = hold.shutdown(std::net::Shutdown::Write).and_then(|()| hold.read(&mut report));
        let cause = match told {
            // Closed by the exec.
            Ok(0) => return Ok((pid, pidfd)),
            Ok(8) => {
                let [s0, s1, s2, s3, e0, e1, e2, e3] = report;
                let step = i32::from_ne_bytes([s0, s1, s2, s3]);
                let errno = Errno::from_raw_os_error(i32::from_ne_bytes([e0, e1, e2, e3]));
                format!("{} fails: {errno}", Step::name(step))
            }
            Ok(_) => "it says nothing that makes sense".to_owned(),
            Err(error) => error.to_string(),
        };
        super::launched::reap(&pidfd);
        Err(LaunchError::new("start the gofer", cause))
    }

    /// Ends it instead.
    pub(super) fn give_up(self) {
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, rustix::process::Signal::KILL);
        super::launched::reap(&self.pidfd);
    }
}

/// What a child does, to say what failed.
#[derive(Clone, Copy)]
enum Step {
    Wait,
    Session,
    Root,
    Capabilities,
    Descriptors,
    Execute,
}

impl Step {
    fn name(number: i32) -> &'static str {
        let steps = [
            (Self::Wait, "waiting for its name space"),
            (Self::Session, "making a session"),
            (Self::Root, "becoming root of its name space"),
            (Self::Capabilities, "keeping its capabilities"),
            (Self::Descriptors, "placing its descriptors"),
            (Self::Execute, "executing the program"),
        ];
        steps.iter().find(|(step, _)| *step as i32 == number).map_or("an unknown step", |(_, name)| name)
    }
}

/// Clones the process, which then waits for [`Held::go`].
pub(super) fn spawn(plan: &Plan) -> Result<Held, LaunchError> {
    let failed = |step: &'static str| move |errno: Errno| LaunchError::new(step, errno);
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = null.map_err(failed("open /dev/null"))?;
    let pair = UnixStream::pair().map_err(|error| LaunchError::new("make a socket pair for the gofer", error))?;
    // Out of the way of the numbers that they get: the child's copies then hit none that is yet to be copied.
    let above = |fd: &OwnedFd| fcntl_dupfd_cloexec(fd, highest(plan.descriptors.len()));
    let null = above(&null).map_err(failed("place a descriptor"))?;
    let theirs = above(&pair.1.into()).map_err(failed("place a descriptor"))?;
    let high: Result<Vec<_>, _> = plan.descriptors.iter().map(above).collect();
    let high = high.map_err(failed("place a descriptor"))?;
    let hold = above(&pair.0.into()).map_err(failed("place a descriptor"))?;
    let error = plan.error.as_ref().map(above).transpose().map_err(failed("place a descriptor"))?;

    let argv = pointers(&plan.argv);
    let environment = pointers(&plan.environment);
    let mut numbers: Vec<RawFd> = vec![null.as_raw_fd(); 2];
    numbers.push(error.as_ref().unwrap_or(&null).as_raw_fd());
    numbers.extend(high.iter().map(AsRawFd::as_raw_fd));

    let mut pidfd: RawFd = -1;
    // SAFETY: an all-zero clone_args is valid: all its fields are numbers, and 0 means "not asked for".
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = u64::from((plan.namespaces | libc::CLONE_PIDFD).cast_unsigned());
    arguments.pidfd = (&raw mut pidfd).expose_provenance() as u64;
    arguments.exit_signal = u64::from(libc::SIGCHLD.cast_unsigned());
    // SAFETY: `arguments` is a clone_args of the size that is passed, and its `pidfd` points to an integer that lives
    // on. Without CLONE_VM the child has memory of its own, so that this returns twice as fork(2) does; the child runs
    // `execute` alone, which neither allocates nor locks.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size_of_val(&arguments)) };
    if pid == 0 {
        execute(&Child {
            path: &plan.path,
            argv: &argv,
            environment: &environment,
            numbers: &numbers,
            hold: theirs.as_raw_fd(),
            ours: hold.as_raw_fd(),
            session: plan.session,
            become_root: plan.become_root,
            ambient: plan.ambient,
        });
    }
    if pid < 0 {
        let cause = std::io::Error::last_os_error();
        return Err(LaunchError::new("clone a process into name spaces for the gofer", cause));
    }
    // SAFETY: clone3 has succeeded, so that `pidfd` is a new descriptor that nobody else knows of.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| LaunchError::new("clone a process", "its number is none"))?;
    Ok(Held { pid, pidfd, hold: hold.into() })
}

/// Keeps a descriptor open across the exec under its own number.
pub(super) fn inheritable(fd: &OwnedFd) -> Result<(), LaunchError> {
    fcntl_setfd(fd, FdFlags::empty()).map_err(|errno| LaunchError::new("let a descriptor be inherited", errno))
}

/// First number above those of `count` donated descriptors.
fn highest(count: usize) -> RawFd {
    RawFd::try_from(count + 3).unwrap_or(RawFd::MAX)
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// What the child uses, all of it made by the parent.
struct Child<'p> {
    path: &'p CString,
    /// Both end with null.
    argv: &'p [*const libc::c_char],
    environment: &'p [*const libc::c_char],
    /// The descriptors that become 0, 1, 2 and so on; all are above the last of these.
    numbers: &'p [RawFd],
    hold: RawFd,
    /// The parent's end, which the child has inherited.
    ours: RawFd,
    session: bool,
    become_root: bool,
    ambient: u32,
}

/// In the child: system calls and nothing else.
fn execute(child: &Child<'_>) -> ! {
    // SAFETY: close(2) takes an integer. The parent's end has to go, lest its end of file never come.
    unsafe { libc::close(child.ours) };
    let mut byte = 0_u8;
    // SAFETY: `byte` has room for the one byte asked for.
    if unsafe { libc::read(child.hold, (&raw mut byte).cast(), 1) } != 0 {
        fail(child, Step::Wait);
    }
    if child.session {
        // SAFETY: setsid(2) takes nothing.
        let made = unsafe { libc::setsid() };
        if made < 0 {
            fail(child, Step::Session);
        }
    }
    if child.become_root {
        // The raw calls: libc's own signal other threads, of which the child has none, under a lock.
        // SAFETY: takes integers.
        let group = unsafe { libc::syscall(libc::SYS_setresgid, 0, 0, 0) };
        // SAFETY: takes integers.
        let user = unsafe { libc::syscall(libc::SYS_setresuid, 0, 0, 0) };
        if group != 0 || user != 0 {
            fail(child, Step::Root);
        }
    }
    if child.ambient != 0 && !keep_capabilities(child.ambient) {
        fail(child, Step::Capabilities);
    }
    for (number, &descriptor) in (0..).zip(child.numbers) {
        // SAFETY: dup2(2) takes integers; it clears close-on-exec on the copy.
        if unsafe { libc::dup2(descriptor, number) } < 0 {
            fail(child, Step::Descriptors);
        }
    }
    // Rust's start-up ignores SIGPIPE, and that would be inherited.
    // SAFETY: signal(2) with the default disposition installs no function.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // SAFETY: path, and all pointers before the null at the end of both lists, are strings that the plan keeps; the
    // child has copies of them at the same addresses.
    unsafe { libc::execve(child.path.as_ptr(), child.argv.as_ptr(), child.environment.as_ptr()) };
    fail(child, Step::Execute)
}

/// Makes capabilities ambient: an exec as anybody but user 0 takes away all others.
fn keep_capabilities(mask: u32) -> bool {
    /// Of capget(2) and capset(2): version 3, and the calling thread.
    const HEADER: [u32; 2] = [0x2008_0522, 0];
    // Effective, permitted and inheritable ones, the lower 32 of each first.
    let mut sets = [0_u32; 6];
    // SAFETY: the header is one of version 3, for which the kernel fills six words.
    if unsafe { libc::syscall(libc::SYS_capget, HEADER.as_ptr(), sets.as_mut_ptr()) } != 0 {
        return false;
    }
    sets[2] |= mask;
    // SAFETY: as above; the kernel reads the six words.
    if unsafe { libc::syscall(libc::SYS_capset, HEADER.as_ptr(), sets.as_ptr()) } != 0 {
        return false;
    }
    (0..u32::BITS).filter(|bit| mask >> bit & 1 == 1).all(|bit| {
        // SAFETY: prctl(2) takes integers here.
        unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE, libc::c_ulong::from(bit), 0, 0) == 0 }
    })
}

/// Tells the parent what failed, and ends.
fn fail(child: &Child<'_>, step: Step) -> ! {
    // SAFETY: takes nothing and returns a pointer.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the location is valid for as long as the thread lives.
    let errno = unsafe { *errno };
    let report = [step as i32, errno];
    // SAFETY: `report` has the bytes that are written.
    unsafe { libc::write(child.hold, report.as_ptr().cast(), size_of_val(&report)) };
    // SAFETY: ends the process without running anything of it.
    unsafe { libc::_exit(127) }
}
