//! D7: listings of directories larger than a reply.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gofer_integration::{Ask, Exchange, over_both};
use gofer_protocol::FdId;

/// All names, by requests of one budget, which begins with a rewinding one.
fn list_all(client: &dyn Exchange, open: FdId, budget: i32) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    let mut more = client.getdents(open, budget.wrapping_neg()).expect("a listing");
    while !more.is_empty() {
        names.extend(more.into_iter().map(|entry| entry.name));
        // The smallest number has no positive.
        more = client.getdents(open, budget.max(i32::MIN + 1).abs()).expect("a listing");
    }
    names
}

/// Lists a directory of files with these names.
fn check(names: &BTreeSet<Vec<u8>>, budgets: &[i32]) {
    let fill =
        |dir: &Path| names.iter().for_each(|name| fs::write(dir.join(OsStr::from_bytes(name)), "").expect("a file"));
    over_both(&[], fill, |t| {
        let (open, _) = t.client.open(t.root, 0).expect("open");
        for &budget in budgets {
            let listed = list_all(t.client, open, budget);
            assert_eq!(listed.len(), names.len(), "budget {budget}");
            assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), *names, "budget {budget}");
        }
    });
}

/// Defect D7: a budget beyond what a reply holds loses no entry, not with long names.
#[test]
fn a_listing_of_long_names_beyond_a_reply_is_complete() {
    let names = (0..9000).map(|n| format!("{n:0>255}").into_bytes()).collect();
    check(&names, &[65_536, 1 << 20, i32::MAX, i32::MIN]);
}

/// Defect D7: nor with short names, each of which takes more of a reply than of the budget.
#[test]
fn a_listing_of_short_names_is_complete_and_counts_do_not_wrap() {
    // More than a count of 16 bits can say.
    let names = (0..66_000).map(|n| format!("{n:x}").into_bytes()).collect();
    check(&names, &[65_536, i32::MAX, i32::MIN]);
}

/// Defect D7: a small budget goes on where it stopped.
#[test]
fn a_listing_by_small_budgets_is_complete() {
    let names = (0..300).map(|n| format!("{n:0>width$}", width = 1 + n % 200).into_bytes()).collect();
    check(&names, &[280, 300, 512, 1000, 8192]);
}
