//! What the kernel says of the mounts that a gofer sees.

use gofer::launch::Launched;
use gofer_integration::eventually;

use crate::subject::proc;

/// One line of `mountinfo`.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) point: String,
    pub(crate) options: Vec<String>,
    /// Such as `shared:1`, `master:1` and `unbindable`.
    pub(crate) propagation: Vec<String>,
    pub(crate) source: String,
}

impl Line {
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|one| one == option)
    }

    /// Which of `words` it has, in their order.
    pub(crate) fn of<'w>(&self, words: &[&'w str]) -> Vec<&'w str> {
        words.iter().copied().filter(|word| self.has(word)).collect()
    }
}

/// All of them, as seen from its root once that is the container's: the list of mounts is sent a moment before.
pub(crate) fn lines(gofer: &Launched) -> Vec<Line> {
    let table = || read(&proc(gofer, "mountinfo"));
    let is_inside = || table().iter().all(|line| line.source != TMPFS);
    assert!(eventually(is_inside), "the gofer's own file system is still in sight: {:#?}", table());
    table()
}

/// What a gofer calls the file system that it builds the container's root on.
pub(crate) const TMPFS: &str = "runsc-root";

/// The topmost one at `point`.
pub(crate) fn at(gofer: &Launched, point: &str) -> Line {
    let all = lines(gofer);
    let points: Vec<_> = all.iter().map(|line| line.point.clone()).collect();
    all.into_iter().rfind(|line| line.point == point).unwrap_or_else(|| panic!("nothing at {point}: {points:?}"))
}

pub(crate) fn read(text: &str) -> Vec<Line> {
    text.lines()
        .map(|line| {
            let words: Vec<_> = line.split(' ').collect();
            let dash = words.iter().position(|word| *word == "-").expect("a separator");
            Line {
                point: words[4].to_owned(),
                options: words[5].split(',').map(str::to_owned).collect(),
                propagation: words[6..dash].iter().map(|word| (*word).to_owned()).collect(),
                source: words[dash + 2].to_owned(),
            }
        })
        .collect()
}
