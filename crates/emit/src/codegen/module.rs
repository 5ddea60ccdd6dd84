//! The module around the programs: creation, entries, bursts, the table that the host reads.

use std::collections::BTreeMap;
use std::fmt::Write;

use millrace_object::program::Role;

use super::gate::Prefetch;
use super::objects::offers;
use super::text::comment_text;
use super::unit::Unit;
use super::{lifetime, parts};

/// One entry as emitted.
pub struct Entry {
    /// its C function
    pub function: String,
    /// whether that takes a slot (or NULL), for a token
    pub slotted: bool,
    /// what starts it
    pub role: Role,
    /// what its prefetch pass can find, for packet entries
    pub prefetch: Option<Prefetch>,
    /// the C function that takes up what a prefetch pass found
    pub resume: Option<String>,
    /// whether that takes a second slot, of what is linked behind the first element
    pub takes_up: bool,
    /// the C function of the body that packets run first, where that may leave ([`crate::sync::Hooks::attempt`])
    pub attempt: Option<String>,
    /// it runs once for all workers ([`crate::sync::Treatment::once`])
    pub once: bool,
}

/// Whether an entry is for packets.
pub fn takes_packets(role: Role) -> bool {
    matches!(role, Role::Xdp | Role::OnPacket)
}

/// The opening comment: what the module is of.
pub fn header(unit: &Unit, entries: &[String]) -> String {
    let mut out = format!(
        "/* {}: emitted by millrace, {}.\n *\n",
        comment_text(&unit.program.name),
        unit.treatment.title()
    );
    for entry in entries {
        let _ = writeln!(out, " * {}", comment_text(entry));
    }
    for object in &unit.program.objects {
        let _ = writeln!(
            out,
            " * {}: {}",
            comment_text(&object.name),
            comment_text(object.kind.name)
        );
    }
    out.push_str(
        " *\n * How to read it: crates/emit/README.md, and codegen.h for the names of locals.\n */\n",
    );
    out
}

/// What a burst begins with: bounded reclaiming of what has expired.
pub fn ageing(unit: &Unit) -> String {
    let mut calls = String::new();
    for (id, object) in unit.objects().filter(|(id, _)| !unit.is_shared(*id)) {
        if object.expire_after > 0 && offers(object, "age") {
            let (kind, operands) = (object.kind.c, unit.operands(id));
            let _ = writeln!(calls, "\t{kind}_age({operands}, now);");
        }
    }
    if calls.is_empty() {
        return String::new();
    }
    format!(
        "\n/* Once a burst, at its first packet's time. */\nstatic void age(struct mr_instance *self, u64 now)\n{{\n{calls}}}\n"
    )
}

/// What the functions of one packet entry are made from that run a burst.
pub struct Burst<'a> {
    /// the module
    pub unit: &'a Unit<'a>,
    /// the entry's number among those for packets
    pub index: usize,
    /// the entry
    pub entry: &'a Entry,
    /// whether a burst begins with `age`, which reclaims what has expired of the worker's own objects
    pub ages: bool,
    /// statements before each packet, about `packets[i]`
    pub begin: &'a [&'a str],
}

/// The table that the host reads.
pub fn table(unit: &Unit, entries: &[Entry]) -> String {
    let mut out = String::new();
    let wrapper = |out: &mut String, name: &str, entry: &Entry| {
        let call = format!("{}(self, pkt)", entry.function);
        let [before, behind] = match entry.once {
            true => unit.treatment.handler(),
            false => ["", ""],
        };
        let publish = parts::behind(unit);
        let _ = write!(
            out,
            "\nstatic void {name}(struct mr_instance *self, struct mr_packet *pkt)\n{{\n{before}\t{call};\n{behind}{publish}}}\n"
        );
    };
    let mut shared = String::new();
    if lifetime::shares(unit) {
        shared.push_str("\t.shared_bytes = sizeof(struct mr_shared),\n\t.shared_align = _Alignof(struct mr_shared),\n\t.create_shared = create_shared,\n\t.destroy_shared = destroy_shared,\n");
    }
    for (role, member) in [(Role::OnStart, "start_once"), (Role::OnStop, "stop_once")] {
        if entries.iter().any(|e| e.once && e.role == role) {
            let _ = writeln!(shared, "\t.{member} = 1,");
        }
    }
    let mut timers = String::new();
    let (mut start, mut stop, mut timer_count) = ("NULL", "NULL", 0);
    for entry in entries {
        match entry.role {
            Role::OnStart => {
                wrapper(&mut out, "start", entry);
                start = "start";
            }
            Role::OnStop => {
                wrapper(&mut out, "stop", entry);
                stop = "stop";
            }
            Role::Every { period } => {
                wrapper(&mut out, &format!("fire{timer_count}"), entry);
                let _ = writeln!(
                    timers,
                    "\t{{ .period = {period}ull, .fire = fire{timer_count}{} }},",
                    if entry.once { ", .once = 1" } else { "" }
                );
                timer_count += 1;
            }
            Role::Xdp | Role::OnPacket | Role::Timer | Role::Expiry => {}
        }
    }
    if timer_count > 0 {
        let _ = write!(
            out,
            "\nstatic const struct mr_timer timers[] = {{\n{timers}}};\n"
        );
    }
    let packets: Vec<&Entry> = entries.iter().filter(|e| takes_packets(e.role)).collect();
    let name = |index: usize, entry: &Entry, suffix: &str| match entry.prefetch.is_some() {
        true => format!("burst{index}{suffix}"),
        false => format!("burst{index}_plain"),
    };
    let mut published = BTreeMap::new();
    for (index, entry) in packets.iter().enumerate() {
        for suffix in ["", "_plain"] {
            let function = name(index, entry, suffix);
            if let Some((name, text)) = parts::burst(unit, &function)
                && published.insert(function, name).is_none()
            {
                out.push_str(&text);
            }
        }
    }
    for (table, suffix) in [("bursts", ""), ("bursts_plain", "_plain")] {
        let _ = writeln!(
            out,
            "\nstatic void (*const {table}[])(struct mr_instance *, struct mr_packet *const *, u32) = {{"
        );
        for (index, entry) in packets.iter().enumerate() {
            let function = name(index, entry, suffix);
            let function = published.get(&function).unwrap_or(&function);
            let _ = writeln!(out, "\t{function},");
        }
        if packets.is_empty() {
            out.push_str("\tNULL,\n");
        }
        out.push_str("};\n");
    }
    let [mut members, named] = unit.treatment.table();
    out.push_str(&named);
    let [seen, member] = parts::seen(unit);
    out.push_str(&seen);
    members.push_str(&member);
    let _ = write!(
        out,
        "
static const struct mr_module module = {{
	.abi = MR_ABI,
	.objects = {objects},
	.timers = {timer_count},
	.programs = {programs},
	.instance_bytes = sizeof(struct mr_instance),
	.instance_align = _Alignof(struct mr_instance),
	.object = {object},
	.timer = {timer},
	.create = create,
	.destroy = destroy,
	.start = {start},
	.stop = {stop},
	.burst = bursts,
	.burst_plain = bursts_plain,
{alarms}{shared}{members}}};

__attribute__((visibility(\"default\"))) const struct mr_module *millrace_module(void);

const struct mr_module *millrace_module(void)
{{
	return &module;
}}
",
        objects = unit.program.objects.len(),
        programs = packets.len(),
        object = if unit.program.objects.is_empty() {
            "NULL"
        } else {
            "objects"
        },
        timer = if timer_count == 0 { "NULL" } else { "timers" },
        alarms = if !unit.timers {
            ""
        } else {
            "\t.alarms = alarms,\n\t.alarm = alarm,\n"
        },
    );
    out
}
