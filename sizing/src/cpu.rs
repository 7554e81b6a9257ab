//! The limits that hold for this process: affinity, cpuset, and the quotas of its group and of all its ancestors.
//!
//! A missing file is no limit: a controller is often enabled for some levels of the tree only, and the top has no
//! quota. An unreadable or malformed file is left out with a note.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use rustix::thread::sched_getaffinity;

use crate::cgroup::{self, Group, Version};
use crate::host::{Host, Malformed, Note, Survey, digits};

/// Everything learned about the CPUs a process may use. Empty when nobody looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Each limit: affinity, cpuset, then the quotas from the group upwards.
    pub found: Vec<Limit>,
    /// The group asked for quotas.
    pub cpu_group: Option<PathBuf>,
    /// The group asked for its cpuset.
    pub cpuset_group: Option<PathBuf>,
    /// What could not be learned.
    pub notes: Vec<Note>,
}

/// One limit and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What kind of limit it is.
    pub kind: Kind,
    /// The CPUs it allows, at least one; a fraction is rounded up.
    pub cpus: usize,
    /// The exact fraction, if it is a quota.
    pub quota: Option<Quota>,
    /// The file it is from, as the process sees it; none if the kernel was asked directly.
    pub file: Option<PathBuf>,
}

/// The kinds of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The CPUs the thread may run on.
    Affinity,
    /// The CPUs of the cgroup.
    Cpuset,
    /// CPU time per period.
    Quota,
}

/// CPU time per period: neither is ever zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Microseconds of CPU time in each period.
    pub micros: u64,
    /// The length of a period in microseconds.
    pub period_micros: u64,
}

impl Limits {
    /// Looks up every limit on the calling thread and its process's own cgroups.
    pub fn find(host: &Host) -> Self {
        let mut survey = Survey::of(host);
        let groups = cgroup::own(&mut survey);
        let mut found = Vec::from_iter(affinity(&mut survey));
        if let Some(group) = &groups.cpuset {
            found.extend(cpuset(&mut survey, group));
        }
        if let Some(group) = &groups.cpu {
            found.extend(group.upwards().filter_map(|dir| quota(&mut survey, group.version, dir)));
        }
        Self {
            found,
            cpu_group: groups.cpu.map(|group| group.dir),
            cpuset_group: groups.cpuset.map(|group| group.dir),
            notes: survey.notes,
        }
    }
}

impl Kind {
    /// One lower-case word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Affinity => "affinity",
            Self::Cpuset => "cpuset",
            Self::Quota => "quota",
        }
    }
}

impl Quota {
    /// Whole CPUs, rounded up: at least one.
    pub fn cpus(self) -> usize {
        usize::try_from(self.micros.div_ceil(self.period_micros.max(1))).unwrap_or(usize::MAX).max(1)
    }

    /// `None` for a time or a period of zero, which the kernel never writes.
    fn new(micros: u64, period_micros: u64) -> Option<Self> {
        (micros > 0 && period_micros > 0).then_some(Self { micros, period_micros })
    }
}

/// The exact fraction, `150000/100000`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.micros, self.period_micros)
    }
}

fn affinity(survey: &mut Survey<'_>) -> Option<Limit> {
    let known = survey.host.affinity.or_else(|| usize::try_from(sched_getaffinity(None).ok()?.count()).ok());
    match known {
        Some(cpus) => Some(Limit { kind: Kind::Affinity, cpus: cpus.max(1), quota: None, file: None }),
        None => affinity_by_status(survey),
    }
}

/// The mask as text. The system call fails with EINVAL where the kernel knows more CPUs than the 1,024 of our mask.
/// Unlike the call, the text also lists CPUs that are not there.
fn affinity_by_status(survey: &mut Survey<'_>) -> Option<Limit> {
    let file = Path::new("/proc/thread-self/status");
    let mut list = None;
    survey.lines(file, |line| {
        if let Some(value) = line.strip_prefix(b"Cpus_allowed_list:") {
            list = Some(String::from_utf8_lossy(value).into_owned());
        }
    });
    let Ok(Some(allowed)) = cpu_list(list.as_deref().unwrap_or_default().trim()) else {
        survey.note(file, "no list of allowed CPUs, affinity left out".to_owned());
        return None;
    };
    let online = survey.value(Path::new("/sys/devices/system/cpu/online"), cpu_list);
    let cpus = online.map_or_else(|| count(&allowed), |online| common(&allowed, &online)).max(1);
    Some(Limit { kind: Kind::Affinity, cpus, quota: None, file: Some(file.to_owned()) })
}

/// The cpuset of the nearest group that has one: it already takes its ancestors into account. An empty one means
/// that the parent's holds.
fn cpuset(survey: &mut Survey<'_>, group: &Group) -> Option<Limit> {
    let names: &[&str] = match group.version {
        Version::V1 => &["cpuset.effective_cpus", "cpuset.cpus"],
        Version::V2 => &["cpuset.cpus.effective"],
    };
    group.upwards().flat_map(|dir| names.iter().map(|name| dir.join(name))).find_map(|file| {
        let cpus = count(&survey.value(&file, cpu_list)?);
        Some(Limit { kind: Kind::Cpuset, cpus, quota: None, file: Some(file) })
    })
}

fn quota(survey: &mut Survey<'_>, version: Version, dir: &Path) -> Option<Limit> {
    let (file, quota) = match version {
        Version::V1 => quota_v1(survey, dir)?,
        Version::V2 => {
            let file = dir.join("cpu.max");
            let quota = survey.value(&file, cpu_max)?;
            (file, quota)
        }
    };
    Some(Limit { kind: Kind::Quota, cpus: quota.cpus(), quota: Some(quota), file: Some(file) })
}

fn quota_v1(survey: &mut Survey<'_>, dir: &Path) -> Option<(PathBuf, Quota)> {
    let file = dir.join("cpu.cfs_quota_us");
    let micros = survey.value(&file, cfs_quota)?;
    let period_file = dir.join("cpu.cfs_period_us");
    let quota =
        survey.value(&period_file, |text| Ok(Some(digits(text)?))).and_then(|period| Quota::new(micros, period));
    if quota.is_none() {
        survey.note(&period_file, "no period for the quota beside it, which is left out".to_owned());
    }
    Some((file, quota?))
}

/// `max 100000` or `200000 100000`; the period may be missing and then is the kernel's default.
fn cpu_max(text: &str) -> Result<Option<Quota>, Malformed> {
    let mut fields = text.split_ascii_whitespace();
    let micros = fields.next().ok_or(Malformed)?;
    let period = fields.next().map_or(Ok(DEFAULT_PERIOD), digits)?;
    match (micros, fields.next()) {
        (_, Some(_)) => Err(Malformed),
        ("max", None) => Ok(None),
        (micros, None) => Quota::new(digits(micros)?, period).ok_or(Malformed).map(Some),
    }
}

/// Microseconds, or -1 for no limit.
fn cfs_quota(text: &str) -> Result<Option<u64>, Malformed> {
    match text {
        "-1" => Ok(None),
        _ => match digits(text)? {
            0 => Err(Malformed),
            micros => Ok(Some(micros)),
        },
    }
}

type CpuList = Vec<RangeInclusive<usize>>;

/// `0-3,8,10-11`: ascending, as the kernel writes it, so that no CPU counts twice. `None` if empty.
fn cpu_list(text: &str) -> Result<Option<CpuList>, Malformed> {
    let mut list = CpuList::new();
    for part in text.split(',').filter(|_| !text.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (digits(first)?, digits(last)?);
        let ascending = list.last().is_none_or(|before| *before.end() < first);
        if !ascending || first > last || last > HIGHEST_CPU {
            return Err(Malformed);
        }
        list.push(first..=last);
    }
    Ok((!list.is_empty()).then_some(list))
}

fn count(list: &CpuList) -> usize {
    list.iter().map(|range| range.end() - range.start() + 1).sum()
}

/// How many CPUs are in both lists.
fn common(a: &CpuList, b: &CpuList) -> usize {
    let overlap = |a: &RangeInclusive<usize>, b: &RangeInclusive<usize>| {
        (*a.end().min(b.end()) + 1).saturating_sub(*a.start().max(b.start()))
    };
    a.iter().map(|a| b.iter().map(|b| overlap(a, b)).sum::<usize>()).sum()
}

/// The kernel's period unless somebody wrote another one: 100 ms.
const DEFAULT_PERIOD: u64 = 100_000;

/// No kernel numbers its CPUs higher; a list that does is garbage. It also keeps the sums from overflowing.
const HIGHEST_CPU: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn quota_of(micros: u64, period_micros: u64) -> Result<Option<Quota>, Malformed> {
        Ok(Some(Quota { micros, period_micros }))
    }

    #[test]
    fn cpu_max_has_a_quota_and_a_period() {
        assert_eq!(cpu_max("max 100000"), Ok(None));
        assert_eq!(cpu_max("max"), Ok(None));
        assert_eq!(cpu_max("200000 100000"), quota_of(200_000, 100_000));
        assert_eq!(cpu_max("200000\t50000"), quota_of(200_000, 50_000));
        assert_eq!(cpu_max("18446744073709551615 1"), quota_of(u64::MAX, 1));
    }

    #[test]
    fn cpu_max_without_a_period_has_the_kernels_default() {
        assert_eq!(cpu_max("200000"), quota_of(200_000, 100_000));
    }

    #[test]
    fn a_malformed_cpu_max_is_refused_and_nothing_is_divided_by_zero() {
        for text in [
            "",
            "-1 100000",
            "0 100000",
            "200000 0",
            "200000 max",
            "max x",
            "Max 100000",
            "1.5 100000",
            "18446744073709551616 100000",
            "200000 100000 0",
        ] {
            assert_eq!(cpu_max(text), Err(Malformed), "{text:?}");
        }
    }

    #[test]
    fn a_v1_quota_is_a_number_or_minus_one() {
        assert_eq!(cfs_quota("300000"), Ok(Some(300_000)));
        assert_eq!(cfs_quota("-1"), Ok(None));
        for text in ["", "0", "-2", "max"] {
            assert_eq!(cfs_quota(text), Err(Malformed), "{text:?}");
        }
    }

    #[test]
    fn a_cpu_list_has_ranges_and_gaps() {
        for (text, cpus) in [("0", 1), ("0-3", 4), ("0-3,8,10-11", 7), ("5,7", 2)] {
            assert_eq!(cpu_list(text).map(|list| list.as_ref().map(count)), Ok(Some(cpus)), "{text:?}");
        }
        assert_eq!(cpu_list(""), Ok(None));
        for text in [",", "1-", "-1", "3-0", "0,0", "0-3,2-5", "0-3,", "a", "0 1", "0-1-2", "0-18446744073709551615"] {
            assert_eq!(cpu_list(text), Err(Malformed), "{text:?}");
        }
    }

    #[test]
    fn a_fraction_is_rounded_up_to_whole_cpus() {
        for (micros, cpus) in [(1_000, 1), (99_999, 1), (150_000, 2), (200_000, 2), (200_010, 3), (850_000, 9)] {
            assert_eq!(Quota { micros, period_micros: 100_000 }.cpus(), cpus);
        }
    }

    #[test]
    fn more_cpus_than_a_mask_holds_are_counted_from_the_status_file() {
        let root = tempfile::tempdir().unwrap();
        let status = "Name:\tgofer\nCpus_allowed:\tff\nCpus_allowed_list:\t0-99,1500-4095\nThreads:\t1\n";
        fs::create_dir_all(root.path().join("proc/thread-self")).unwrap();
        fs::write(root.path().join("proc/thread-self/status"), status).unwrap();
        let host = Host::described(root.path(), 1);
        assert_eq!(affinity_by_status(&mut Survey::of(&host)).unwrap().cpus, 2_696);

        fs::create_dir_all(root.path().join("sys/devices/system/cpu")).unwrap();
        fs::write(root.path().join("sys/devices/system/cpu/online"), "2-1501\n").unwrap();
        let limit = affinity_by_status(&mut Survey::of(&host)).unwrap();
        assert_eq!((limit.cpus, limit.file.as_deref()), (100, Some(Path::new("/proc/thread-self/status"))));
    }

    #[test]
    fn the_status_file_and_the_kernel_agree_on_affinity() {
        let host = Host::running();
        let by_call = affinity(&mut Survey::of(&host)).unwrap();
        let by_text = affinity_by_status(&mut Survey::of(&host)).unwrap();
        assert_eq!(by_call.file, None);
        assert_eq!(by_call.cpus, by_text.cpus);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>(), almost in "[0-9max, \t-]{0,40}") {
            for text in [text, almost] {
                for quota in [cpu_max(&text)].into_iter().flatten().flatten() {
                    prop_assert!(quota.cpus() >= 1);
                }
                let _ = cfs_quota(&text);
                let _ = cpu_list(&text);
            }
        }

        #[test]
        fn a_cpu_list_counts_what_was_written(cpus in prop::collection::btree_set(0..5_000_usize, 1..100)) {
            let text = Vec::from_iter(cpus.iter().map(usize::to_string)).join(",");
            let list = cpu_list(&text).unwrap().unwrap();
            prop_assert_eq!(count(&list), cpus.len());
            prop_assert_eq!(common(&list, &vec![0..=5_000]), cpus.len());
        }
    }
}
