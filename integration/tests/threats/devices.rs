//! Devices in the tree. Needs root, to make them.

use std::fs;
use std::path::Path;

use gofer_integration::plant::{node, null_device};
use gofer_integration::{Ask, Gofer, change, nothing, over_both};
use gofer_protocol::Errno;
use gofer_protocol::record::StatxMask;
use rustix::fs::{FileType, OFlags};

/// A device `null`, a pseudo-terminal multiplexer, whose opening has a side effect, and a block device.
fn devices(dir: &Path) {
    null_device(&dir.join("null"));
    node(&dir.join("ptmx"), FileType::CharacterDevice, (5, 2));
    node(&dir.join("block"), FileType::BlockDevice, (7, 0));
}

/// Threat: device access: block devices never.
#[test]
fn a_block_device_cannot_even_be_walked_to() {
    over_both(&["--character-device-policy", "passthrough"], devices, |t| {
        assert_eq!(t.client.walk(t.root, &["block"]).err(), Some(Errno::EPERM));
        assert_eq!(t.client.walk_stat(t.root, &["block"]).err(), Some(Errno::EPERM));
        assert_eq!(t.client.walk(t.root, &["null", "x"]).err(), Some(Errno::ENOTDIR));
        assert!(!leads_to(t.gofer(), "block").any(|_| true));
    });
}

/// Threat: device access: policy gate on char devices.
#[test]
fn a_character_device_is_opened_only_where_policy_says_so() {
    for (policy, allowed) in [("emulated-only", false), ("prefer-emulated", true), ("passthrough", true)] {
        over_both(&["--character-device-policy", policy], devices, |t| {
            let null = t.client.walk_to(t.root, "null");
            match t.client.open(null, 2) {
                Ok((open, fds)) => {
                    assert!(allowed, "{policy}");
                    assert_eq!((fds.len(), t.client.pread(open, 0, 10)), (1, Ok(Vec::new())));
                }
                Err(errno) => assert_eq!((allowed, errno), (false, Errno::EPERM), "{policy}"),
            }
        });
    }
}

/// Threat: device access: walking to a device does not open it.
#[test]
fn walking_to_a_device_has_no_side_effect_on_it() {
    over_both(&["--character-device-policy", "passthrough"], devices, |t| {
        let device = t.client.walk_to(t.root, "ptmx");
        t.client.walk_stat(t.root, &["ptmx"]).expect("attributes");
        t.client.fstat(device).expect("attributes");
        t.client.set_stat(&change(device, StatxMask(0x27a))).expect("attributes");
        let mut held = 0;
        for flags in leads_to(t.gofer(), "ptmx") {
            assert!(flags.contains(OFlags::PATH), "the device was opened");
            held += 1;
        }
        assert_eq!(held, 1);
    });
}

/// Threat: device access: no client makes a device, but the whiteout of overlay file systems.
#[test]
fn devices_with_a_number_are_not_made() {
    over_both(&[], nothing, |t| {
        for (mode, minor, major) in [(0x2000, 3, 1), (0x6000, 0, 7), (0x6000, 0, 0), (0x2000, 0, 1), (0x2000, 1, 0)] {
            let mode = u16::try_from(mode | 0o666).expect("a mode");
            let payload = mknod(t.root.0, mode, minor, major);
            assert_eq!(t.client.exchange(14, &payload).err(), Some(Errno::EPERM), "{mode:o} {major}:{minor}");
        }
        assert_eq!(fs::read_dir(t.path()).expect("a listing").count(), 0);
    });
}

fn mknod(dir: u64, mode: u16, minor: u32, major: u32) -> Vec<u8> {
    let owner = [0xff; 8];
    let numbers = [minor.to_le_bytes(), major.to_le_bytes()].concat();
    [&dir.to_le_bytes()[..], &owner, &mode.to_le_bytes(), &[0; 6], &numbers, &[1, 0, b'd']].concat()
}

/// Flags of the server's descriptors that lead to `name`.
fn leads_to(gofer: &Gofer, name: &str) -> impl Iterator<Item = OFlags> {
    let suffix = format!("/{name}");
    let all = gofer.descriptor_flags().into_iter();
    all.filter(move |(target, _)| target.display().to_string().ends_with(&suffix)).map(|(_, flags)| flags)
}
