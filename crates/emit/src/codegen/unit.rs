//! The translation unit of a module: the program, what its objects are called in C, and what all its functions have in
//! common.

use millrace_check::members::Operators;
use millrace_object::Program;
use millrace_object::program::{ObjectId, StateObject};

use super::objects::is_constant;
use super::text::identifier;
use crate::error::Error;
use crate::headers;
use crate::sync::{Sharing, Treatment};

/// What the text of a module is made from.
pub struct Unit<'a> {
    /// the program
    pub program: &'a Program,
    /// how workers synchronise
    pub treatment: &'a dyn Treatment,
    /// how the objects live on the workers
    sharing: &'a Sharing,
    /// by object: index and name, as part of identifiers
    tags: Vec<String>,
    /// by object: constant bytes of the module instead of a member of the instance
    constants: Vec<bool>,
    /// programs make tail calls
    pub tails: bool,
    /// programs leave their verdicts in the instance
    pub verdicts: bool,
    /// packets may be redirected to what a call names
    pub targets: bool,
    /// timers in values call functions
    pub timers: bool,
    /// programs draw random numbers
    pub random: bool,
    /// what packets see of numbers that all add to is noted, for tests
    pub noted: bool,
    /// by object: which operators change its members
    pub operators: Vec<Operators>,
}

impl<'a> Unit<'a> {
    /// A program's, without tail calls, timers and random draws.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a kind without a header.
    pub fn new(
        program: &'a Program,
        treatment: &'a dyn Treatment,
        sharing: &'a Sharing,
    ) -> Result<Self, Error> {
        for object in &program.objects {
            if headers::text(&format!("state/{}.h", object.kind.c)).is_none() {
                return Err(Error::Unsupported {
                    place: program.name.clone(),
                    what: format!("the kind {} of {}", object.kind.name, object.name),
                });
            }
        }
        let tag = |(index, object): (usize, &StateObject)| {
            format!("{index}_{}", identifier(&object.name))
        };
        Ok(Unit {
            program,
            treatment,
            sharing,
            tags: program.objects.iter().enumerate().map(tag).collect(),
            constants: program.objects.iter().map(is_constant).collect(),
            tails: false,
            verdicts: false,
            targets: false,
            timers: false,
            random: false,
            noted: false,
            operators: Vec::new(),
        })
    }

    /// The program's objects with their numbers.
    pub fn objects(&self) -> impl Iterator<Item = (ObjectId, &'a StateObject)> + use<'a> {
        let objects = self.program.objects.iter().enumerate();
        objects.map(|(index, object)| (ObjectId(index), object))
    }

    /// Those that all workers have in common.
    pub fn shared(&self) -> impl Iterator<Item = (ObjectId, &'a StateObject)> {
        self.objects().filter(|(id, _)| self.is_shared(*id))
    }

    /// The queue of what is due at moments of its own, an lvalue.
    pub fn alarms(&self) -> &'static str {
        match self.treatment.shares_moments() {
            true => "self->shared->alarms",
            false => "self->alarms",
        }
    }

    /// Whether workers share this object.
    pub fn is_shared(&self, object: ObjectId) -> bool {
        self.treatment.shares(object)
    }

    /// Whether each worker has a part of it that others read.
    pub fn is_parted(&self, object: ObjectId) -> bool {
        let place = self.sharing.placement.objects.get(object.0);
        place.is_some_and(|place| place.held.staleness().is_some())
    }

    /// How old the parts of others may be that packets read, ns; 0: there is one copy.
    pub fn staleness(&self, object: ObjectId) -> u64 {
        let place = self.sharing.placement.objects.get(object.0);
        place.and_then(|place| place.held.staleness()).unwrap_or(0)
    }

    /// Over how many indexes an allocator's numbers are told apart; 0: a lease takes any.
    pub fn homes(&self, object: ObjectId) -> u32 {
        self.sharing.homes(object)
    }

    /// What the object is called in the structure that holds it.
    pub fn member(&self, object: ObjectId) -> String {
        format!("o{}", self.tags[object.0])
    }

    /// The object itself, an lvalue.
    pub fn instance(&self, object: ObjectId) -> String {
        let shared = if self.is_shared(object) {
            "shared->"
        } else {
            ""
        };
        format!("self->{shared}o{}", self.tags[object.0])
    }

    /// The first two arguments of every function of a kind.
    pub fn operands(&self, object: ObjectId) -> String {
        format!("&{}, &shape{}", self.instance(object), self.tags[object.0])
    }

    /// An object's shape.
    pub fn shape(&self, object: ObjectId) -> String {
        format!("shape{}", self.tags[object.0])
    }

    /// What control functions and their like are called: a prefix.
    pub fn prefix(&self, object: ObjectId) -> String {
        format!("o{}", self.tags[object.0])
    }

    /// The address of a byte of a global section.
    pub fn value(&self, object: ObjectId, offset: u32) -> String {
        let base = if self.constants[object.0] {
            format!("(u8 *)constant{}", self.tags[object.0])
        } else {
            format!("global_base({})", self.operands(object))
        };
        if offset == 0 {
            base
        } else {
            format!("({base} + {offset})")
        }
    }

    /// What the functions of its kind are called: a prefix, and the name of its structure.
    pub fn kind(&self, object: ObjectId) -> &'static str {
        let own = self.program.objects[object.0].kind.c;
        self.treatment.kind(object).unwrap_or(own)
    }

    /// Whether the header of this object's kind has a function.
    pub fn offers(&self, object: ObjectId, function: &str) -> bool {
        headers::defines(self.kind(object), function)
    }

    /// Whether its functions are of another kind than its own: its entries have version words.
    pub fn is_worded(&self, object: ObjectId) -> bool {
        self.treatment.kind(object).is_some()
    }

    /// Whether the object is constant bytes of the module.
    pub fn is_constant(&self, object: ObjectId) -> bool {
        self.constants[object.0]
    }

    /// Whether each instance has one of its own.
    pub fn is_owned(&self, object: ObjectId) -> bool {
        !self.is_constant(object) && !self.is_shared(object)
    }

    /// The object's index and name, as part of identifiers.
    pub fn tag(&self, object: usize) -> &str {
        &self.tags[object]
    }
}
