//! The system call filter: compiled from the rules, and put on all threads.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter_all_threads,
};

use super::Grant;
use super::rules::{self, Arg, Rule};
use crate::process::StartError;

/// The filter that this process gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter {
    grant: Grant,
}

impl Filter {
    pub(super) fn new(grant: Grant) -> Self {
        Self { grant }
    }

    /// Ends the process, from now on, when one of its threads makes a system call that serving has no use for. Sets
    /// `no_new_privs` as well. All threads are covered, those that exist and those to come.
    ///
    /// # Errors
    /// Where the kernel has no such filters.
    pub(crate) fn seal(&self) -> Result<(), StartError> {
        let failed = |error| StartError::new("install the system call filter", error);
        let allowed = only(rules::of(&self.grant)).map_err(failed)?;
        let missing = without_clone3().map_err(failed)?;
        // Of the answers of several filters the strictest counts.
        apply_filter_all_threads(&missing).map_err(failed)?;
        apply_filter_all_threads(&allowed).map_err(failed)
    }
}

/// Kills for everything but `rules`.
fn only(rules: Vec<Rule>) -> Result<BpfProgram, seccompiler::Error> {
    let mut all: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for Rule { call, forms } in rules {
        let forms = forms.into_iter().map(|form| {
            let conditions = form.into_iter().map(condition).collect::<Result<_, seccompiler::Error>>()?;
            Ok::<_, seccompiler::Error>(SeccompRule::new(conditions)?)
        });
        all.entry(call).or_default().extend(forms.collect::<Result<Vec<_>, _>>()?);
    }
    program(all, SeccompAction::KillProcess, SeccompAction::Allow)
}

/// Has `clone3(2)` look like a call that the kernel does not know. Its flags are in memory, where no filter sees them;
/// the C library falls back to `clone(2)`, whose flags are an argument.
fn without_clone3() -> Result<BpfProgram, seccompiler::Error> {
    let no_such_call = SeccompAction::Errno(libc::ENOSYS.cast_unsigned());
    program([(libc::SYS_clone3, Vec::new())].into(), SeccompAction::Allow, no_such_call)
}

fn program(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    action: SeccompAction,
) -> Result<BpfProgram, seccompiler::Error> {
    let here: TargetArch = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, otherwise, action, here)?.try_into()?)
}

fn condition(arg: Arg) -> Result<SeccompCondition, seccompiler::Error> {
    use SeccompCmpArgLen::{Dword, Qword};
    use SeccompCmpOp::{Eq, MaskedEq};
    let (index, len, op, value) = match arg {
        Arg::Int(index, value) => (index, Dword, Eq, u64::from(value.cast_unsigned())),
        Arg::IntBits(index, allowed) => (index, Dword, MaskedEq(u64::from(!allowed.cast_unsigned())), 0),
        Arg::Is(index, value) => (index, Qword, Eq, value),
        Arg::Bits { index, required, optional } => (index, Qword, MaskedEq(!optional), required),
    };
    Ok(SeccompCondition::new(index, len, op, value)?)
}
