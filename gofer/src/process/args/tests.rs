//! The command lines of real runtimes, and bent ones. Descriptors of the test process are made where one is named.

use std::os::fd::{AsRawFd, IntoRawFd};

use super::*;
use crate::process::flags::Kind;
use crate::process::globals;

/// A number that is open, and that nobody owns.
fn open() -> RawFd {
    tempfile::tempfile().unwrap().into_raw_fd()
}

fn try_parse(argv: &str) -> Result<Args, Refusal> {
    parse(argv.split_whitespace().map(OsString::from))
}

fn refusal(argv: &str) -> Refusal {
    try_parse(argv).expect_err(argv)
}

fn e22() -> String {
    let [spec, mounts, io, other] = [open(), open(), open(), open()];
    format!(
        "--root=R --debug=true --log=L --debug-log=D/ --network=none gofer --bundle B --spec-fd={spec} \
         --mounts-fd={mounts} --io-fds={io} --io-fds={other}"
    )
}

fn e24() -> String {
    let [spec, mounts, io] = [open(), open(), open()];
    format!(
        "--platform=systrap gofer --bundle B --gofer-mount-confs=lisafs:self,lisafs:none --spec-fd={spec} \
         --mounts-fd={mounts} --io-fds={io}"
    )
}

fn e26() -> String {
    let [spec, mounts, rpc, io, chroot] = [open(), open(), open(), open(), open()];
    format!(
        "--platform=systrap gofer --bundle B --gofer-mount-confs=lisafs:self --spec-fd={spec} --mounts-fd={mounts} \
         --rpc-fd={rpc} --io-fds={io} --sync-chroot-fd={chroot} t1"
    )
}

#[test]
fn the_command_line_of_each_generation_is_told() {
    let args = try_parse(&e22()).unwrap();
    assert_eq!((args.generation, args.donated.io.len(), args.directfs), (Generation::E22, 2, false));
    let args = try_parse(&e24()).unwrap();
    assert_eq!((args.generation, args.confs.len(), args.directfs), (Generation::E24, 2, true));
    let args = try_parse(&e26()).unwrap();
    assert_eq!((args.generation, args.id.as_deref(), args.directfs), (Generation::E26, Some("t1"), true));
    assert_eq!(args.char_devices, CharDevices::EmulatedOnly);
}

#[test]
fn every_global_flag_is_accepted_with_one_dash_and_with_two() {
    let special = [
        ("character-device-policy", "passthrough"),
        ("host-uds", "all"),
        ("host-fifo", "open"),
        ("overlay2", "all:memory"),
        ("debug-log-format", "json"),
    ];
    for flag in globals::all().filter(|flag| !matches!(flag.name, "help" | "h" | "version")) {
        let special = special.iter().find(|(name, _)| *name == flag.name).map(|(_, value)| (*value).to_owned());
        let value = special.unwrap_or_else(|| match flag.kind {
            Kind::Bool => "true".to_owned(),
            Kind::Int | Kind::Uint | Kind::Decimals => "7".to_owned(),
            Kind::Duration | Kind::BoolOrDuration => "15s".to_owned(),
            Kind::Text => "word".to_owned(),
        });
        for dashes in ["-", "--"] {
            for argv in [e22(), e24(), e26()] {
                let value = if flag.name.ends_with("log-fd") { open().to_string() } else { value.clone() };
                let argv = format!("{dashes}{}={value} {argv}", flag.name);
                assert!(try_parse(&argv).is_ok(), "{argv}: {:?}", try_parse(&argv));
            }
        }
    }
    for value in ["true", "20\u{b5}s"] {
        assert!(try_parse(&format!("--gvisor-gro={value} {}", e26())).is_ok());
    }
}

#[test]
fn values_may_follow_and_lists_add_up() {
    let lists = |argv: String, io: &str| try_parse(&argv.replace("--bundle B", &format!("--bundle=B {io}")));
    let [a, b] = [open(), open()];
    let args = lists(e22(), &format!("-io-fds {a} -io-fds={b}")).unwrap();
    let numbers: Vec<RawFd> = args.donated.io.iter().map(AsRawFd::as_raw_fd).collect();
    assert_eq!((numbers.len(), &numbers[..2]), (4, &[a, b][..]));
    assert_eq!(args.bundle, PathBuf::from("B"));
    for argv in [e24(), e26()] {
        assert_eq!(lists(argv, &format!("--io-fds={},{}", open(), open())).unwrap().donated.io.len(), 3);
    }
    assert!(lists(e22(), &format!("--io-fds={},{}", open(), open())).unwrap_err().unknown);
}

#[test]
fn a_repeated_scalar_flag_takes_its_last_value() {
    let args = try_parse(&format!("--host-uds=all {} --sync-userns-fd={} --sync-userns-fd=-1", e22(), open())).unwrap();
    assert!(args.donated.sync_userns.is_none());
    assert_eq!(
        try_parse(&format!("--host-uds=all --host-uds=open {}", e22())).unwrap().host_sockets,
        HostSockets::Open
    );
}

#[test]
fn unknown_flags_and_malformed_integers_are_refused_by_name() {
    for (argv, name, code) in [
        (format!("--new-policy=x {}", e24()), "--new-policy", 2),
        (format!("--fdlimit=many {}", e24()), "--fdlimit", 2),
        (format!("{} --new-fd=7", e24()), "--new-fd", 128),
        (format!("{} --spec-fd=x", e24()), "--spec-fd", 128),
        (format!("{} --spec-fd", e24()), "--spec-fd", 128),
        (format!("--host-uds=some {}", e24()), "--host-uds", 128),
        (format!("--version {}", e24()), "--version", 128),
        (format!("-h {}", e24()), "--h", 128),
        ("--debug boot".to_owned(), "boot", 128),
        ("--debug".to_owned(), "sub-command", 128),
    ] {
        let refusal = refusal(&argv);
        assert!(refusal.unknown && refusal.error.to_string().contains(name), "{argv}: {}", refusal.error);
        assert_eq!(refusal.error.code(), code, "{argv}");
    }
}

#[test]
fn what_is_required_ends_it_with_128_if_it_is_missing() {
    for (argv, name) in [
        (e24().replace("--bundle B", ""), "--bundle"),
        (e24().replace("--spec-fd=", "--mounts-fd="), "--spec-fd"),
        (e24().replace("--io-fds=", "--mounts-fd="), "--io-fds"),
    ] {
        let refusal = refusal(&argv);
        assert!(!refusal.unknown && refusal.error.to_string().contains(name), "{argv}: {}", refusal.error);
        assert_eq!(refusal.error.code(), 128);
    }
}

#[test]
fn flags_that_do_not_belong_together_are_refused() {
    let fd = open();
    for argv in [
        format!("{} --rpc-fd={fd}", e22()),
        format!("{} --sync-chroot-fd={fd}", e22()),
        format!("{} --rpc-fd={fd}", e24()),
        format!("{} --sync-chroot-fd={fd}", e24()),
        e26().replace(" t1", &format!(" --sync-nvproxy-fd={fd} t1")),
        format!("{} --sync-nvproxy-fd={fd}", e22()),
        format!("{} --dev-io-fd={fd}", e22()),
        format!("{} --uid=5", e24()),
        format!("{} --proc-mount-sync-fd={fd}", e24()),
        format!("{} word", e22()),
        format!("{} word", e24()),
        format!("{} word", e26()),
        e26().replace(" t1", ""),
    ] {
        assert!(refusal(&argv).unknown, "{argv}");
    }
    assert!(descriptors::is_open(fd));
    assert!(try_parse(&format!("{} --rpc-fd=-1 --sync-nvproxy-fd=-1", e22())).is_ok());
}

#[test]
fn bad_mount_confs_are_refused() {
    for bad in ["none:none", "lisafs", "lisafs:self:2g", "zfs:none"] {
        for argv in [e24(), e26()] {
            let refusal = refusal(&argv.replace("lisafs:self", bad));
            assert!(refusal.unknown && refusal.error.to_string().contains(bad), "{}", refusal.error);
        }
    }
    let sized = "lisafs:memory:size=1g";
    assert!(try_parse(&e26().replace("lisafs:self", sized)).is_ok());
    assert!(refusal(&e24().replace("lisafs:self", sized)).unknown);
}

#[test]
fn a_descriptor_is_taken_once_and_only_if_it_is_open() {
    let fd = open();
    for (argv, word) in [
        (format!("{} --sync-userns-fd={fd} --trace-fd={fd}", e24()), "--sync-userns-fd, --trace-fd"),
        (format!("{} --io-fds={fd} --io-fds={fd}", e24()), "named twice"),
        (format!("{} --trace-fd=1", e24()), "standard stream"),
        (format!("{} --trace-fd=-2", e24()), "--trace-fd"),
        (format!("{} --trace-fd=1000000", e24()), "not open"),
    ] {
        let refusal = refusal(&argv);
        assert!(!refusal.unknown && refusal.error.to_string().contains(word), "{argv}: {}", refusal.error);
    }
    let args = try_parse(&format!("{} --trace-fd={fd}", e24())).unwrap();
    assert_eq!(args.donated.profiles[0].as_raw_fd(), fd);
    for fd in args.donated.io.iter().chain(&args.donated.profiles) {
        assert!(rustix::io::fcntl_getfd(fd).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
    }
}

#[test]
fn a_refusal_changes_no_descriptor_and_can_be_logged() {
    let fd = tempfile::tempfile().unwrap();
    rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::empty()).unwrap();
    let number = fd.as_raw_fd();
    let refusal = refusal(&format!("--new=x --debug-log-format=json-k8s --log-fd={number} {}", e24()));
    let logs = refusal.logs();
    assert_eq!(logs.format, LogFormat::JsonK8s);
    assert!(logs.errors.is_some_and(|copy| copy.as_raw_fd() != number));
    assert!(rustix::io::fcntl_getfd(&fd).unwrap().is_empty());
}

#[test]
fn a_device_connection_is_enough() {
    let argv = e26().replace("--io-fds=", "--dev-io-fd=");
    let args = try_parse(&argv).unwrap();
    assert!(args.donated.io.is_empty() && args.donated.dev.is_some());
}

#[test]
fn debug_records_are_wanted_only_if_the_filter_admits_gofers() {
    for (flags, verbose) in [
        ("", false),
        ("--debug", true),
        ("--debug --debug-command=boot,gofer", true),
        ("--debug --debug-command=boot", false),
        ("--debug --debug-command=!boot", true),
        ("--debug --debug-command=!boot,gofer", false),
        ("--debug-command=gofer", false),
    ] {
        assert_eq!(try_parse(&format!("{flags} {}", e24())).unwrap().log.verbose, verbose, "{flags}");
    }
}

#[test]
fn an_unknown_log_format_counts_only_with_a_debug_log() {
    assert!(try_parse(&format!("--debug-log-format=xml {}", e24())).is_ok());
    assert!(!refusal(&format!("--debug-log-format=xml --debug-log-fd={} {}", open(), e24())).unknown);
}

#[test]
fn overlays_count_under_e22_only() {
    let covers = |flags: &str, argv: String| {
        try_parse(&format!("{flags} {argv}")).map(|args| (args.overlay.root, args.overlay.mounts))
    };
    for (flags, covered) in [
        ("", (false, false)),
        ("--overlay", (true, true)),
        ("--overlay2=root:memory", (true, false)),
        ("--overlay2=all:/dir", (true, true)),
        ("--overlay2=none", (false, false)),
    ] {
        assert_eq!(covers(flags, e22()).unwrap(), covered, "{flags}");
        assert_eq!(covers(flags, e24()).unwrap(), (false, false));
    }
    assert!(covers("--overlay2=some:memory", e22()).unwrap_err().unknown);
    assert!(!covers("--overlay --overlay2=all:memory", e22()).unwrap_err().unknown);
}

#[test]
fn host_sockets_are_given_one_way_only() {
    let sockets = |flags: &str| try_parse(&format!("{flags} {}", e26())).map(|args| args.host_sockets);
    assert_eq!(sockets("--fsgofer-host-uds").unwrap(), HostSockets::Open);
    assert_eq!(sockets("--host-uds=create").unwrap(), HostSockets::Create);
    assert!(!sockets("--fsgofer-host-uds --host-uds=all").unwrap_err().unknown);
}
