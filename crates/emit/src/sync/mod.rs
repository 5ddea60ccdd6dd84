//! Synchronisation: what a treatment adds to code that otherwise assumes one thread.
//!
//! `codegen` writes the C of a program that one thread runs. A treatment is a folder here that implements [`Treatment`]:
//! which objects all workers have in common, which bodies a program has and what stands before, behind or in place
//! of their steps ([`Hooks`]), the functions that run a burst, and what all this needs of the instance and of each state
//! kind. Adding one is a folder and a line in [`TREATMENTS`]; `tests/serial` is the shortest there is.

pub mod alone;
pub mod lock;
pub mod replicate;
mod sites;
pub mod transact;

use std::collections::BTreeMap;

use millrace_check::Checked;
use millrace_check::facts::StepId;
use millrace_object::Program;
use millrace_object::insn::Insn;
use millrace_object::program::ObjectId;
use millrace_place::Placement;

use crate::codegen::{Body, Burst, Code, Cut, Slice, Statement, Text, Unit};
use crate::error::Error;

/// All treatments. The first that a placement asks for is taken; `alone` takes any.
pub const TREATMENTS: &[Make] = &[replicate::make, transact::make, lock::make, alone::make];

/// What a program is emitted for: how its objects live on several workers.
#[derive(Clone, Debug, Default)]
pub struct Sharing {
    /// by object, in the program's order: whether one is there for all workers, and which allocators lease only numbers
    /// that come home (fastpath/state/homes.h). An object that is not in it is each worker's own.
    pub placement: Placement,
    /// none but for tests
    pub test: Option<Test>,
    /// for a profile: what packets of one worker met of another's is counted, by the program's steps
    pub profile: bool,
}

impl Sharing {
    /// Over how many indexes an allocator's numbers are told apart; 0: a lease takes any.
    #[must_use]
    pub fn homes(&self, object: ObjectId) -> u32 {
        let place = self.placement.objects.get(object.0);
        let home = place.is_some_and(|place| place.home.is_some());
        if home { self.placement.indexes } else { 0 }
    }
}

/// A module whose threads are switched wherever they touch shared state, at places that a seed chooses
/// (fastpath/sync/points.h): for tests of what comes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Test {
    /// chooses the places
    pub seed: u64,
    /// writers take no lock, so that something wrong does come of it
    pub dropped: bool,
    /// transactions: what packets read and wrote is noted, and no counter gives them places in an order
    pub log: bool,
}

/// What a treatment is made from.
pub struct Input<'a> {
    /// the program
    pub program: &'a Program,
    /// what is known of it
    pub checked: &'a Checked,
    /// by entry of the program: all its steps
    pub wholes: &'a [Slice<'a>],
    /// whether it makes tail calls
    pub tails: bool,
    /// how its objects live
    pub sharing: &'a Sharing,
}

/// Makes a treatment; none where the placement does not ask for it.
///
/// # Errors
/// [`Error::Unsupported`] where it asks for what cannot be.
pub type Make = fn(&Input) -> Result<Option<Box<dyn Treatment>>, Error>;

/// One way in which the workers of a process run a module. Without any of its methods but `title` and `burst` it is
/// that of one worker.
pub trait Treatment {
    /// What the module's opening comment says.
    fn title(&self) -> &'static str;

    /// Whether all workers have one of this object, a member of `struct mr_shared`.
    fn shares(&self, _object: ObjectId) -> bool {
        false
    }

    /// The kind whose functions an object has (`fastpath/state/KIND.h`) where that is not its own.
    fn kind(&self, _object: ObjectId) -> Option<&'static str> {
        None
    }

    /// Whether entries of an object have the time of their last writer (`struct shape`, `timed`).
    fn timed(&self, _object: ObjectId) -> bool {
        false
    }

    /// Whether an object notes which of its places change (`struct shape`, `noted`).
    fn notes(&self, _object: ObjectId) -> bool {
        false
    }

    /// What stands in `struct mr_shared` beside the objects that are shared; none where there are none.
    fn common(&self) -> Option<Common> {
        None
    }

    /// The bodies of an entry of the program.
    fn bodies(&self, _entry: usize) -> Bodies<'_> {
        Bodies {
            first: &Plain,
            fallback: None,
            hot: true,
            sites: None,
        }
    }

    /// Whether one thread runs the program by itself, so that a packet may go on in a linked element from what was found there ahead.
    fn takes_up(&self) -> bool {
        false
    }

    /// Hooks of the function that timers in values call, by its number in `Checked::timers`.
    fn timer(&self, _timer: usize) -> &dyn Hooks {
        &Plain
    }

    /// Whether what is due at moments of its own is one queue for all workers: the objects are shared. Else each worker
    /// has its own.
    fn shares_moments(&self) -> bool {
        false
    }

    /// Whether an entry without a packet runs once for all workers, between two [`Treatment::handler`]; else each worker
    /// runs it over its own objects.
    fn once(&self, _entry: usize) -> bool {
        false
    }

    /// Headers and definitions, behind those of the state kinds.
    fn includes(&self, _unit: &Unit) -> String {
        String::new()
    }

    /// Members of the instance, a line each.
    fn members(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The first statements of `create`, which makes an instance from `config`.
    fn create(&self) -> &'static str {
        ""
    }

    /// Functions behind those of the entries.
    ///
    /// # Errors
    /// What there is no code for.
    fn parts(
        &self,
        _out: &mut Text,
        _unit: &Unit,
        _wholes: &[Slice],
        _file: &str,
    ) -> Result<(), Error> {
        Ok(())
    }

    /// Members of the module's table, a line each, and what they name.
    fn table(&self) -> [String; 2] {
        [String::new(), String::new()]
    }

    /// Functions behind those that make and destroy an instance.
    fn functions(&self, _unit: &Unit) -> String {
        String::new()
    }

    /// The functions `burstN`, if the entry has a prefetch pass, and `burstN_plain`.
    fn burst(&self, burst: &Burst) -> String;

    /// Statements before and behind what the host does with a shared object.
    fn control(&self) -> [&'static str; 2] {
        ["", ""]
    }

    /// Statements before and behind an entry that runs once for all workers.
    fn handler(&self) -> [&'static str; 2] {
        self.control()
    }
}

/// What workers synchronise with, in `struct mr_shared`.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// the member, a line
    pub member: &'static str,
    /// the call that makes it in `self`, a `struct mr_shared *`, and gives 0 or an error
    pub create: &'static str,
    /// the call that ends it
    pub destroy: &'static str,
}

impl Common {
    /// The lock of all workers.
    pub const LOCK: Self = Self {
        member: "\tstruct lock lock;\n",
        create: "lock_create(&self->lock, config->workers)",
        destroy: "lock_destroy(&self->lock)",
    };
}

/// The bodies of one program.
pub struct Bodies<'a> {
    /// hooks of the body that packets run first
    pub first: &'a dyn Hooks,
    /// hooks of the whole program, which runs where the first body leaves; none where that comes to its end
    pub fallback: Option<&'a dyn Hooks>,
    /// the first body is what nearly all packets run: it may be inlined, and a prefetch pass may run ahead of it
    pub hot: bool,
    /// keyed operations of which the treatment's own passes may have the token, with their numbers from 1; the body then
    /// takes a slot, or NULL, of a type that [`Treatment::includes`] declares
    pub sites: Option<&'a BTreeMap<StepId, u32>>,
}

impl<'a> Bodies<'a> {
    /// What packets try beside each other, where they may, and what each runs alone then.
    pub fn attempted(attempt: Option<&'a dyn Hooks>, alone: &'a dyn Hooks) -> Self {
        Self {
            first: attempt.unwrap_or(alone),
            fallback: attempt.map(|_| alone),
            hot: attempt.is_some(),
            sites: None,
        }
    }
}

/// How a body that may leave before its end differs from the program.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    /// prefix of the C function
    pub prefix: &'static str,
    /// what the comment above it says behind the program's name
    pub title: &'static str,
    /// what it returns at the program's end
    pub done: &'static str,
    /// the statement with which it leaves
    pub leave: &'static str,
}

/// What stands around the steps of one body.
pub trait Hooks {
    /// How the body leaves, if it may.
    fn attempt(&self) -> Option<Attempt> {
        None
    }

    /// Whether it leaves before this step.
    fn leaves(&self, _step: StepId) -> bool {
        false
    }

    /// Statements where it leaves before a step.
    fn leaving(&self, _step: StepId) -> Vec<Statement> {
        Vec::new()
    }

    /// Statements before a step.
    ///
    /// # Errors
    /// Those of the expressions that `body` gives.
    fn before(&self, _body: &Body, _step: StepId, _insn: &Insn) -> Result<Vec<Statement>, Error> {
        Ok(Vec::new())
    }

    /// What it needs of steps beside the program.
    fn cut(&self, _slice: &Slice) -> Option<Cut> {
        None
    }

    /// Statements behind a step.
    ///
    /// # Errors
    /// Those of the expressions that `body` gives.
    fn behind(&self, _body: &Body, _step: StepId, _insn: &Insn) -> Result<Vec<Statement>, Error> {
        Ok(Vec::new())
    }

    /// The result of a step from elsewhere ([`Role::Given`](crate::codegen::Role::Given)).
    fn given(&self, _step: StepId) -> Option<Code> {
        None
    }

    /// The token of the key of a step that is a call, which `own` computes, where it may be at hand.
    fn token(&self, _body: &Body, _step: StepId, own: Code) -> Code {
        own
    }

    /// The condition of a branch in place of its own.
    fn condition(&self, _step: StepId, own: Code) -> Code {
        own
    }

    /// Lines before all others of the body.
    ///
    /// # Errors
    /// Those of the expressions that `body` gives.
    fn declarations(&self, _body: &Body) -> Result<Vec<String>, Error> {
        Ok(Vec::new())
    }

    /// Statements where a part that begins in the middle of a program begins.
    ///
    /// # Errors
    /// Those of the expressions that `body` gives.
    fn entry(&self, _body: &Body) -> Result<Vec<Statement>, Error> {
        Ok(Vec::new())
    }

    /// Statements where a part ends: at a step before which it stops, or with the program.
    ///
    /// # Errors
    /// Those of the expressions that `body` gives.
    fn ends(&self, _body: &Body, _at: Option<StepId>) -> Result<Vec<Statement>, Error> {
        Ok(vec!["return;".into()])
    }

    /// Statements in place of a store of `value` to `place`, both C expressions.
    fn store(&self, _step: StepId, _place: &Code, _value: &Code) -> Option<Vec<Statement>> {
        None
    }

    /// Prefix of the kind's function for a call, between the kind's and the helper's name, where the body leaves if that
    /// returns `MR_RESTART`.
    fn callee(&self, _step: StepId) -> Option<&'static str> {
        None
    }

    /// Arguments that the kind's function has for a call behind those of the helper.
    ///
    /// # Errors
    /// Those of the expressions that `body` gives.
    fn more(&self, _body: &Body, _step: StepId) -> Result<Option<Code>, Error> {
        Ok(None)
    }
}

/// Nothing around any step.
pub struct Plain;

impl Hooks for Plain {}
