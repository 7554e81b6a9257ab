//! D7: listings of directories larger than a reply.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gofer_integration::{Client, Requests, Served, each_way};
use gofer_protocol::FdId;

/// All names, by requests of one budget, which begins with a rewinding one.
fn list_all(client: &dyn Client, open: FdId, budget: i32) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    let mut more = client.list(open, budget.wrapping_neg()).expect("a listing");
    while !more.is_empty() {
        names.extend(more.into_iter().map(|(name, _)| name));
        // The smallest number has no positive.
        more = client.list(open, budget.max(i32::MIN + 1).abs()).expect("a listing");
    }
    names
}

fn check(served: &Served, expected: &BTreeSet<Vec<u8>>, budgets: &[i32]) {
    let (open, _) = served.client.open(served.root, 0).expect("open");
    each_way(&served.client, |client| {
        for &budget in budgets {
            let names = list_all(client, open, budget);
            assert_eq!(names.len(), expected.len(), "budget {budget}");
            assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), *expected, "budget {budget}");
        }
    });
}

fn fill(dir: &Path, names: impl Iterator<Item = String>) -> BTreeSet<Vec<u8>> {
    names
        .map(|name| {
            fs::write(dir.join(&name), "").expect("a file");
            name.into_bytes()
        })
        .collect()
}

/// Defect D7: a budget beyond what a reply holds loses no entry, not with long names.
#[test]
fn a_listing_of_long_names_beyond_a_reply_is_complete() {
    let mut expected = BTreeSet::new();
    let served = Served::with(&[], |dir| expected = fill(dir, (0..9000).map(|n| format!("{n:0>255}"))));
    check(&served, &expected, &[65_536, 1 << 20, i32::MAX, i32::MIN]);
}

/// Defect D7: nor with short names, each of which takes more of a reply than of the budget.
#[test]
fn a_listing_of_short_names_is_complete_and_counts_do_not_wrap() {
    let mut expected = BTreeSet::new();
    // More than a count of 16 bits can say.
    let served = Served::with(&[], |dir| expected = fill(dir, (0..66_000).map(|n| format!("{n:x}"))));
    check(&served, &expected, &[65_536, i32::MAX, i32::MIN]);
}

/// Defect D7: a small budget goes on where it stopped.
#[test]
fn a_listing_by_small_budgets_is_complete() {
    let mut expected = BTreeSet::new();
    let served =
        Served::with(&[], |dir| expected = fill(dir, (0..300).map(|n| format!("{n:0>width$}", width = 1 + n % 200))));
    check(&served, &expected, &[280, 300, 512, 1000, 8192]);
}
