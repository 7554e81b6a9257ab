//! The option byte: what a process that `runsc` starts is told by the file it runs from.
//!
//! `runsc` passes none of our flags on, and not every generation passes an environment on.

/// Seven bytes in `p_paddr` of the segment that holds the payload; the eighth is the option byte. The kernel ignores the
/// field.
pub const PAYLOAD_MARK: u64 = u64::from_le_bytes(*b"rsuexec\0");

const MARK_BITS: u64 = 0x00ff_ffff_ffff_ffff;
const MODE_BITS: u8 = 0b011;
const FAIL_ON_UNKNOWN: u8 = 0b100;

/// Which gofer `runsc` gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// This program.
    Ours = 0,
    /// The payload's own.
    Stock = 1,
    /// The payload's own, with as many threads of Go as our plan has workers.
    StockCapped = 2,
}

/// What happens to a gofer's command line that no known generation writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnknown {
    /// The payload's own gofer takes over.
    Stock,
    /// The process ends, and says why.
    Fail,
}

/// What the option byte says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Which gofer `runsc` gets.
    pub mode: Mode,
    /// What an unknown command line gets.
    pub on_unknown: OnUnknown,
}

impl Options {
    /// The options in a marked `p_paddr`; none if it does not bear the mark.
    ///
    /// A byte that this version does not know reads as the payload's own gofer: the mode that cannot surprise.
    #[must_use]
    pub const fn of(paddr: u64) -> Option<Self> {
        if paddr & MARK_BITS != PAYLOAD_MARK {
            return None;
        }
        let byte = paddr.to_le_bytes()[7];
        let mode = match byte & MODE_BITS {
            0 if byte & !(MODE_BITS | FAIL_ON_UNKNOWN) == 0 => Mode::Ours,
            2 => Mode::StockCapped,
            _ => Mode::Stock,
        };
        let on_unknown = if byte & FAIL_ON_UNKNOWN == 0 { OnUnknown::Stock } else { OnUnknown::Fail };
        Some(Self { mode, on_unknown })
    }

    /// The mark with these options.
    #[must_use]
    pub const fn marked(self) -> u64 {
        let fail = match self.on_unknown {
            OnUnknown::Stock => 0,
            OnUnknown::Fail => FAIL_ON_UNKNOWN,
        };
        PAYLOAD_MARK | ((self.mode as u64 | fail as u64) << 56)
    }
}
