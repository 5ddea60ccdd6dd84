//! Helpers that call a function of the program: a call that waits while its rounds are made.

use std::collections::VecDeque;

use millrace_check::driver::too_many_rounds;
use millrace_object::helper;
use millrace_object::program::ObjectId;

use super::{Call, Machine, Violation, violation};

/// Address of the first function, in no region.
pub const FUNCTIONS: u64 = 1 << 62;

const EINVAL: u64 = 22;

/// Whether a helper calls back.
pub fn calls_back(number: u32) -> bool {
    helper::by_number(number).is_some_and(|h| h.function_argument().is_some())
}

/// Rounds of a helper call that are still to be made.
pub struct Rounds {
    function: usize,
    context: u64,
    done: u64,
    rest: Rest,
}

enum Rest {
    /// rounds in all
    Count(u64),
    /// a map, and keys that were in it when the call began
    Keys(ObjectId, VecDeque<Vec<u8>>),
}

impl Machine<'_> {
    /// Whether a number is the address of a function.
    pub(super) fn is_function(&self, at: u64) -> bool {
        at.checked_sub(FUNCTIONS)
            .is_some_and(|f| f < self.program.functions.len() as u64)
    }

    /// Begins a helper call: its first round, if there is one; `r0` of the caller otherwise.
    pub(super) fn first_round(
        &mut self,
        number: u32,
        c: &mut Call,
    ) -> Result<Option<Call>, Violation> {
        let mut arguments = [0; 4];
        for (i, a) in arguments.iter_mut().enumerate() {
            match c.regs.get(i + 1).copied().flatten() {
                Some(v) => *a = v,
                None => return violation(format!("argument {} of a call is unset", i + 1)),
            }
        }
        let [what, function, context, flags] = arguments;
        let function = function
            .checked_sub(FUNCTIONS)
            .and_then(|f| usize::try_from(f).ok())
            .filter(|f| *f < self.program.functions.len());
        let Some(function) = function else {
            return violation("what is called back is no function");
        };
        c.regs[1..=5].fill(None);
        let rest = if number == helper::LOOP.number {
            let count = u64::from(what as u32);
            if flags == 0 && count > u64::from(helper::MOST_ROUNDS) {
                let caller = self.program.functions.get(c.function);
                let insns = caller.map_or(&[][..], |f| &f.insns);
                // The program counter is past the call already.
                c.regs[0] = Some(too_many_rounds(insns, c.pc.saturating_sub(1)));
                return Ok(None);
            }
            Rest::Count(count)
        } else {
            let id = Self::named(what);
            Rest::Keys(id, self.keys(id)?)
        };
        if flags != 0 {
            c.regs[0] = Some(EINVAL.wrapping_neg());
            return Ok(None);
        }
        let rounds = Rounds {
            function,
            context,
            done: 0,
            rest,
        };
        Ok(self.next_round(rounds, 0, c))
    }

    /// The next round, after one that gave `r0`; without one the helper returns to `caller`.
    pub(super) fn next_round(
        &mut self,
        mut rounds: Rounds,
        r0: u64,
        caller: &mut Call,
    ) -> Option<Call> {
        let arguments = if r0 == 0 {
            self.arguments(&mut rounds)
        } else {
            None
        };
        let Some(arguments) = arguments else {
            caller.regs[0] = Some(rounds.done);
            return None;
        };
        rounds.done += 1;
        let mut call = self.call(rounds.function, arguments);
        call.rounds = Some(rounds);
        Some(call)
    }

    fn arguments(&mut self, rounds: &mut Rounds) -> Option<[Option<u64>; 5]> {
        match &mut rounds.rest {
            Rest::Count(count) if rounds.done < *count => {
                Some([Some(rounds.done), Some(rounds.context), None, None, None])
            }
            Rest::Count(_) => None,
            Rest::Keys(id, keys) => loop {
                let key = keys.pop_front()?;
                // An entry may have been deleted since.
                let Some(value) = self.value_of(*id, &key) else {
                    continue;
                };
                let key = self.map(key, true, false);
                let map = Self::pointer(*id);
                return Some([
                    Some(map),
                    Some(key),
                    Some(value),
                    Some(rounds.context),
                    None,
                ]);
            },
        }
    }

    /// The keys of a map; some at random where entries are.
    fn keys(&mut self, id: ObjectId) -> Result<VecDeque<Vec<u8>>, Violation> {
        let Some(object) = self.program.objects.get(id.0) else {
            return violation("what is gone through is no map");
        };
        if let Some(keys) = self.exact_keys(id) {
            return Ok(keys);
        }
        let (bytes, rounds) = (object.key_bytes, self.draw() % 4);
        let key = |m: &mut Self| (0..bytes).map(|_| m.draw() as u8).collect();
        Ok((0..rounds).map(|_| key(self)).collect())
    }
}
