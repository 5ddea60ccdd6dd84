//! Steps that work on what workers share, as a profile names them.

use millrace_check::facts::{Op, StepId};
use millrace_object::helper;
use millrace_object::insn::Insn;

use super::lock::called;
use super::lock::effects::object;
use crate::codegen::{Slice, Unit, string};

/// The most steps that are told apart: version words have 12 bits for one.
const MOST: usize = 4095;

/// Steps by their numbers, the first of which is none; empty in modules that are not for profiles.
#[derive(Default)]
pub struct Sites(Vec<String>);

impl Sites {
    /// Of a module, which is for profiles or not.
    pub fn new(profile: bool) -> Self {
        Self(if profile {
            vec!["\t\t".into()]
        } else {
            Vec::new()
        })
    }

    /// Whether the module is for profiles.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// The number of a step's; none where it has none.
    pub fn of(&mut self, whole: &Slice, id: StepId) -> Option<usize> {
        if self.0.is_empty() {
            return None;
        }
        let text = said(whole, id);
        let at = self.0.iter().position(|t| *t == text);
        at.or_else(|| {
            let room = self.0.len() < MOST;
            room.then(|| {
                self.0.push(text);
                self.0.len() - 1
            })
        })
    }

    /// What the host sees of them (`struct mr_profile`); `words` where attempts ask what a word is, also where no object has any.
    pub fn seen(&self, unit: &Unit, words: bool) -> String {
        if !self.any() {
            return String::new();
        }
        let (mut what, mut keys) = (String::new(), String::new());
        for (id, _) in unit.shared().filter(|(id, _)| unit.is_worded(*id)) {
            let (map, shape) = (unit.member(id), unit.shape(id));
            what += &format!(
                "\tif (transact_map_what(&self->shared->{map}.map, &{shape}, word) != MR_CONFLICT_OTHER)\n\t\treturn transact_map_what(&self->shared->{map}.map, &{shape}, word);\n"
            );
            keys += &format!(
                "\tif (transact_map_what(&self->shared->{map}.map, &{shape}, word) == MR_CONFLICT_ENTRY) {{\n\t\t*bytes = {shape}.key_bytes;\n\t\treturn transact_map_key_at(&self->shared->{map}.map, &{shape}, word);\n\t}}\n"
            );
        }
        if words {
            what = format!(
                "
static u32 conflict_what(const void *word, const struct transact *t)
{{
	const struct mr_instance *self =
	    (const struct mr_instance *)(const void *)((const u8 *)t - __builtin_offsetof(struct mr_instance, transact));

	(void)word, (void)self;
{what}	return MR_CONFLICT_OTHER;
}}
"
            );
        }
        let sites: String = (self.0.iter())
            .map(|site| format!("\t{},\n", string(site.as_bytes())))
            .collect();
        format!(
            "{what}
static const u8 *conflict_key(const void *word, const void *of, u32 *bytes)
{{
	const struct mr_instance *self = of;

	(void)word, (void)self, (void)bytes;
{keys}	return NULL;
}}

static void profile_conflicts(struct mr_instance *self, mr_conflict_fn *fn, void *context)
{{
	conflicts_hand(&self->conflicts, conflict_key, self, fn, context);
}}

static const char *const sites[] = {{
{sites}}};

static const struct mr_profile profile = {{
	.sites = {count},
	.site = sites,
	.conflicts = profile_conflicts,
}};
",
            count = self.0.len()
        )
    }

    /// The member of the module's table.
    pub fn table(&self) -> &'static str {
        match self.any() {
            true => "\t.profile = &profile,\n",
            false => "",
        }
    }

    /// The member of an instance.
    pub fn member(&self) -> Option<&'static str> {
        self.any()
            .then_some("struct conflicts conflicts; /* for the profile */")
    }
}

/// A step: its line, what it does, and to which object.
fn said(whole: &Slice, id: StepId) -> String {
    let step = whole.step(id);
    let (what, object) = match step.op {
        Op::Plain(Insn::Call { helper }) => match helper::by_number(helper) {
            Some(helper) => {
                let of = object(step, helper).map(|of| called(whole.program, of));
                (helper.name, of.unwrap_or(""))
            }
            None => ("a call", ""),
        },
        Op::Plain(Insn::Atomic { .. }) => ("an atomic operation", held(whole, id)),
        Op::Plain(Insn::Store { .. }) => ("a store", held(whole, id)),
        _ => ("a step", ""),
    };
    format!("{}\t{what}\t{object}", whole.place(step))
}

/// The object whose value a step stores into.
pub(super) fn held<'p>(whole: &Slice<'p>, id: StepId) -> &'p str {
    match whole.step(id).access {
        Some(millrace_check::facts::Access::Value(of)) => called(whole.program, of),
        _ => "",
    }
}
