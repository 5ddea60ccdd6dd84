//! Creation and destruction of an instance, and of what all workers have in common: what was made is unmade when
//! something later fails.

use std::fmt::Write;

use millrace_object::program::ObjectId;

use super::unit::Unit;
use super::{nested, parts, timers};

/// Something that is made, and unmade when something later fails.
struct Made {
    /// the label from which on it is unmade
    label: String,
    create: String,
    destroy: String,
}

impl Made {
    fn object(kind: &str, id: ObjectId, operands: &str) -> Self {
        Self {
            label: format!("undo{}", id.0),
            create: format!(
                "{kind}_create({operands}, config, config->initial ? config->initial[{}] : NULL)",
                id.0
            ),
            destroy: format!("{kind}_destroy({operands})"),
        }
    }
}

/// Statements that make all of these, and those behind `return 0` to which they jump.
fn creation(all: &[Made]) -> (String, String) {
    let (mut create, mut undo) = (String::new(), String::new());
    let mut before: Option<&Made> = None;
    for made in all {
        let fail = match before {
            Some(before) => format!("goto {}", before.label),
            None => "return error".to_owned(),
        };
        let _ = writeln!(
            create,
            "\terror = {};\n\tif (error)\n\t\t{fail};",
            made.create
        );
        if let Some(Made { label, destroy, .. }) = before {
            undo.insert_str(0, &format!("{label}:\n\t{destroy};\n"));
        }
        before = Some(made);
    }
    if !undo.is_empty() {
        undo = format!("\n{undo}\treturn error;\n");
    }
    (create, undo)
}

/// Statements that end all of these, the last one first.
fn destruction(all: &[Made]) -> String {
    let destroy = |made: &Made| format!("\t{};\n", made.destroy);
    all.iter().rev().map(destroy).collect()
}

/// Whether workers have anything in common.
pub fn shares(unit: &Unit) -> bool {
    unit.treatment.common().is_some() || parts::parted(unit).next().is_some()
}

/// `struct mr_shared`; nothing where nothing is shared.
pub fn common(unit: &Unit) -> String {
    if !shares(unit) {
        return String::new();
    }
    let member = unit.treatment.common().map_or("", |c| c.member);
    let mut out = format!("\n/* One for all workers. */\nstruct mr_shared {{\n{member}");
    out.push_str(&parts::members(unit));
    for (id, _) in unit.shared() {
        let _ = writeln!(out, "\tstruct {} {};", unit.kind(id), unit.member(id));
    }
    if unit.timers && unit.treatment.shares_moments() {
        let _ = writeln!(out, "\t{}", timers::MEMBER);
    }
    out.push_str("};\n");
    out
}

/// The functions that make and end it.
fn common_functions(unit: &Unit) -> String {
    if !shares(unit) {
        return String::new();
    }
    let parts = parts::common(unit).map(|(id, create, destroy)| Made {
        label: format!("unpart{}", id.0),
        create,
        destroy,
    });
    let objects = unit.shared().map(|(id, _)| {
        let operands = format!("&self->{}, &{}", unit.member(id), unit.shape(id));
        Made::object(unit.kind(id), id, &operands)
    });
    let lock = unit.treatment.common().map(|common| Made {
        label: "unlock".to_owned(),
        create: common.create.to_owned(),
        destroy: common.destroy.to_owned(),
    });
    let all: Vec<Made> = lock.into_iter().chain(objects).chain(parts).collect();
    let (create, undo) = creation(&all);
    format!(
        "
static int create_shared(struct mr_shared *self, const struct mr_config *config)
{{
	int error;

{create}{moments}	return 0;
{undo}}}

static void destroy_shared(struct mr_shared *self)
{{
{destroy}}}
",
        moments = timers::create_shared(unit),
        destroy = destruction(&all)
    )
}

/// The functions that make and end an instance, and what workers have in common.
pub fn functions(unit: &Unit) -> String {
    let own = unit
        .objects()
        .filter(|(id, o)| unit.is_owned(*id) && !o.is_shape());
    let made = |id: ObjectId| {
        let mut made = Made::object(unit.kind(id), id, &unit.operands(id));
        if unit.is_parted(id) {
            let _ = write!(made.create, " ?: {}", parts::join(unit, id));
        }
        made
    };
    let all: Vec<Made> = own.map(|(id, _)| made(id)).collect();
    let (create, undo) = creation(&all);
    let error = if all.is_empty() {
        ""
    } else {
        "\tint error;\n\n"
    };
    format!(
        "{common}{nested}
static int create(struct mr_instance *self, const struct mr_config *config)
{{
{error}{synchronised}{random}{begin}{create}{timers}{fill}	return 0;
{undo}}}

static void destroy(struct mr_instance *self)
{{
{clear}{destroy}}}
",
        common = common_functions(unit),
        nested = nested::lifetime(unit),
        synchronised = unit.treatment.create(),
        random = match unit.random {
            true => "\tself->sketch_seed = config->sketch_seed;\n",
            false => "",
        },
        begin = nested::begin(unit.program),
        timers = timers::create(unit),
        fill = nested::fill(unit),
        clear = nested::clear(unit),
        destroy = destruction(&all),
    )
}
