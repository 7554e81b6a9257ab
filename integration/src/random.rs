//! Random choices that a seed repeats.

/// A stream of numbers (SplitMix64: one addition and three mixing steps each).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is not 0.
    ///
    /// # Panics
    /// If it is.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// One of several.
    ///
    /// # Panics
    /// If there are none.
    pub fn one_of<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        let count = u64::try_from(choices.len()).expect("a count");
        &choices[usize::try_from(self.below(count)).expect("an index")]
    }
}
