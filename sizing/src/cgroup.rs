//! Which cgroup is ours, and where its files are.
//!
//! `/proc/self/cgroup` says which group the process is in, per hierarchy; `/proc/self/mountinfo` says which part of
//! which hierarchy is mounted where. Neither is enough: a container may see only its own branch, under a root that the
//! first file's path repeats, or with names that a cgroup namespace hides.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use crate::host::Survey;

/// The groups whose limits hold for a process. On a hybrid host they are in different hierarchies.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    pub(crate) cpu: Option<Group>,
    pub(crate) cpuset: Option<Group>,
}

/// A directory of a mounted hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) version: Version,
    pub(crate) dir: PathBuf,
    /// Where the hierarchy is mounted: no ancestor above it can be seen.
    mount: PathBuf,
}

/// The two generations name their files differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

impl Group {
    /// The group, then each ancestor that can be seen.
    pub(crate) fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.dir.ancestors().take_while(|dir| dir.starts_with(&self.mount))
    }
}

/// The groups this process is in.
pub(crate) fn own(survey: &mut Survey<'_>) -> Groups {
    let Some(memberships) = memberships(survey) else { return Groups::default() };
    let Some(mounts) = mounts(survey) else { return Groups::default() };
    Groups {
        cpu: locate(survey, "cpu", &memberships, &mounts),
        cpuset: locate(survey, "cpuset", &memberships, &mounts),
    }
}

/// A line of `/proc/self/cgroup`: our path in one hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct Membership {
    /// Comma-separated and empty for v2; for v1 at least one, or `name=...`.
    controllers: Vec<u8>,
    path: PathBuf,
}

fn memberships(survey: &mut Survey<'_>) -> Option<Vec<Membership>> {
    let file = Path::new("/proc/self/cgroup");
    let mut found = Vec::new();
    let mut odd = false;
    let complete = survey.lines(file, |line| match membership(line) {
        Some(membership) => found.push(membership),
        None => odd = true,
    });
    if odd {
        survey.note(file, "malformed line, left out".to_owned());
    }
    complete.then_some(found)
}

/// `hierarchy:controllers:/path`; only the path may contain colons.
fn membership(line: &[u8]) -> Option<Membership> {
    let mut fields = line.splitn(3, |&byte| byte == b':');
    let _hierarchy = fields.next()?;
    let controllers = fields.next()?.to_vec();
    let path = PathBuf::from(OsStr::from_bytes(fields.next()?));
    path.is_absolute().then_some(Membership { controllers, path })
}

/// A line of `/proc/self/mountinfo` that mounts a cgroup hierarchy, or a branch of one.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    version: Version,
    /// The super block's options; among them, for v1, its controllers.
    options: Vec<u8>,
    /// The group that is seen at `point`.
    root: PathBuf,
    point: PathBuf,
}

fn mounts(survey: &mut Survey<'_>) -> Option<Vec<Mount>> {
    let mut found: Vec<Mount> = Vec::new();
    let complete = survey.lines(Path::new(MOUNTINFO), |line| {
        if let Some(newer) = mount(line) {
            found.retain(|older| older.point != newer.point); // hidden under the newer one
            found.push(newer);
        }
    });
    complete.then_some(found)
}

/// `id parent device root point options [tag...] - type source super-options`. `None` for everything that is not a
/// cgroup hierarchy: other mounts can look as odd as they like.
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&byte| byte == b' ');
    let root = fields.nth(3)?;
    let point = fields.next()?;
    fields.find(|&field| field == b"-")?;
    let version = match fields.next()? {
        b"cgroup" => Version::V1,
        b"cgroup2" => Version::V2,
        _ => return None,
    };
    let options = fields.nth(1)?.to_vec();
    Some(Mount { version, options, root: unescaped(root), point: unescaped(point) })
}

/// Undoes the kernel's escapes: blank, tab, line feed and backslash are written as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = match tail {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if first == b'\\' => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { tail.get(3..).unwrap_or_default() } else { tail };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// Our group for one controller. A v1 line that names the controller owns it, wherever it stands and whatever else is
/// mounted; without one, it can only be in the v2 hierarchy.
fn locate(survey: &mut Survey<'_>, controller: &str, memberships: &[Membership], mounts: &[Mount]) -> Option<Group> {
    let controller = controller.as_bytes();
    let listed = |list: &[u8]| list.split(|&byte| byte == b',').any(|name| name == controller);
    let v1 = memberships.iter().find(|membership| listed(&membership.controllers));
    let v2 = || memberships.iter().find(|membership| membership.controllers.is_empty());
    let (version, path) = match v1 {
        Some(membership) => (Version::V1, &membership.path),
        None => (Version::V2, &v2()?.path),
    };

    let candidates = || {
        let right = |mount: &&Mount| mount.version == version && (version == Version::V2 || listed(&mount.options));
        mounts.iter().filter(right)
    };
    // The one with the highest root shows the most ancestors.
    let best = candidates()
        .filter_map(|mount| Some((mount, below(path, &mount.root)?)))
        .min_by_key(|(mount, _)| mount.root.components().count());
    let group = match (best, candidates().next()) {
        (Some((mount, rest)), _) if rest.as_os_str().is_empty() => group_at_the_root_of(mount),
        (Some((mount, rest)), _) => Group { dir: mount.point.join(rest), ..group_at_the_root_of(mount) },
        (None, Some(mount)) => {
            // Most likely a container whose runtime mounted its own group here. If it is another's, the plan is too
            // careful at worst, because limits only ever lower it.
            let problem =
                format!("own group {path:?} is not below its root {:?}: taking the root's limits", mount.root);
            survey.note(&mount.point, problem);
            group_at_the_root_of(mount)
        }
        (None, None) => {
            survey
                .note(Path::new(MOUNTINFO), format!("own group {path:?} is in no mounted hierarchy, limits left out"));
            return None;
        }
    };
    survey.expect_directory(&group.dir);
    Some(group)
}

fn group_at_the_root_of(mount: &Mount) -> Group {
    Group { version: mount.version, dir: mount.point.clone(), mount: mount.point.clone() }
}

/// The way from `root` down to `path`. `None` if there is none, or if it leads through `..`, which is how the kernel
/// writes a group outside the reader's cgroup namespace: its name is not known here.
fn below<'p>(path: &'p Path, root: &Path) -> Option<&'p Path> {
    let rest = path.strip_prefix(root).ok()?;
    rest.components().all(|part| matches!(part, Component::Normal(_))).then_some(rest)
}

const MOUNTINFO: &str = "/proc/self/mountinfo";

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_group_may_have_colons_in_its_name() {
        let membership = membership(b"3:cpu,cpuacct:/a:b/c").unwrap();
        assert_eq!(membership.path, Path::new("/a:b/c"));
        assert_eq!(membership.controllers, b"cpu,cpuacct");
    }

    #[test]
    fn a_mount_line_may_have_tags_and_escapes() {
        let line =
            br"36 25 0:30 /a\040b /sys/fs/cgroup\134x rw,nosuid shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct";
        let mount = mount(line).unwrap();
        assert_eq!((mount.root.as_path(), mount.point.as_path()), (Path::new("/a b"), Path::new(r"/sys/fs/cgroup\x")));
        assert_eq!((mount.version, mount.options.as_slice()), (Version::V1, &b"rw,cpu,cpuacct"[..]));
    }

    #[test]
    fn a_backslash_without_three_octal_digits_is_itself() {
        assert_eq!(unescaped(br"\04"), Path::new(r"\04"));
        assert_eq!(unescaped(br"\999\\101\"), Path::new(r"\999\A\"));
    }

    #[test]
    fn a_group_outside_the_namespace_is_below_only_roots_that_are_outside_too() {
        assert_eq!(below(Path::new("/../c"), Path::new("/..")), Some(Path::new("c")));
        assert_eq!(below(Path::new("/../c"), Path::new("/")), None);
        assert_eq!(below(Path::new("/"), Path::new("/..")), None);
        assert_eq!(below(Path::new("/a"), Path::new("/a")), Some(Path::new("")));
        assert_eq!(below(Path::new("/ab"), Path::new("/a")), None);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = membership(&line);
            let _ = mount(&line);
            prop_assert!(unescaped(&line).as_os_str().len() <= line.len());
        }

        #[test]
        fn no_almost_right_mount_line_panics(
            paths in r"[0-9 ]{0,8}/[\\0-7a/]{0,9} /[\\0-7a/]{0,9} (rw|-){0,3}",
            options in r" - cgroup2? [a-z,]{0,4} [a-z,]{0,4}",
        ) {
            let _ = mount((paths + &options).as_bytes());
        }
    }
}
