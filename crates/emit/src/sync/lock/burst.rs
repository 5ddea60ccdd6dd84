//! The functions of one packet entry whose workers share state: a burst under the reader's line, a packet at
//! a time as a writer where it has to be.

use std::fmt::Write;

use super::text::{READ, ageing};
use crate::codegen::{Burst, Gate};

/// How packets are run.
pub struct How {
    /// readers keep what they overwrite
    pub undo: bool,
    /// programs read the packet's time, which a prefetch pass may have kept
    pub clock: bool,
    /// what is due at moments of its own is in shared objects
    pub moments: bool,
    /// no moment is told that is earlier than what was done to shared objects
    pub floor: bool,
    /// it is counted which step made a packet a writer, and how long it waited
    pub profile: bool,
}

/// The text.
pub fn bursts(burst: &Burst, how: &How) -> String {
    let How {
        undo,
        clock,
        moments,
        floor,
        profile,
    } = *how;
    let Burst {
        unit, index, entry, ..
    } = burst;
    let statements = |which: &dyn Fn(&str) -> bool| -> String {
        let lines = burst
            .begin
            .iter()
            .filter(|s| which(s))
            .flat_map(|s| s.lines());
        lines
            .map(|l| format!("\t{}\n", l.replace("packets[i]", "pkt")))
            .collect()
    };
    let begin = statements(&|_| true);
    let undo_all = if undo && entry.attempt.is_some() {
        "\tundo_all(&self->undo);\n"
    } else {
        ""
    };
    // The host begins them at 0.
    let draws = if unit.random {
        "\tpkt->draws = 0;\n"
    } else {
        ""
    };
    let floor = if unit.timers && floor {
        "\tself->alarms.floor = self->shared->lock.time;\n"
    } else {
        ""
    };
    let (since, met) = match profile {
        true => (
            "\tu64 since = conflicts_ticks();\n\n",
            "\tconflicts_note(&self->conflicts, self->site, self->shared->site, MR_CONFLICT_WRITE, NULL, conflicts_ticks() - since);\n\tself->shared->site = self->site;\n",
        ),
        false => ("", ""),
    };
    let mut out = format!(
        "
/* The packet as the only one at work, from its beginning. */
static __attribute__((noinline)) void write{index}(struct mr_instance *self, struct mr_packet *pkt)
{{
{since}{undo_all}{draws}	lock_read_to_write({READ});
{met}{floor}	pkt->commit = lock_commit_write(&self->shared->lock);
	pkt->time = lock_time_write(&self->shared->lock, pkt->time);
{begin}	{run}(self, pkt);
	lock_write_to_read({READ});
}}
",
        run = entry.function,
    );
    let Some(reader) = &entry.attempt else {
        out.push_str(&plain(burst, &format!("write{index}(self, packets[i]);")));
        let _ = write!(
            out,
            "
static __attribute__((noinline)) void burst{index}_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{}",
            around(burst, &format!("read{index}(self, packets, n);"))
        );
        return out;
    };
    let undo_begin = if undo {
        "\tundo_begin(&self->undo);\n\tpkt->undo = &self->undo;\n"
    } else {
        "\tpkt->undo = NULL;\n"
    };
    let slot = if entry.slotted { ", NULL" } else { "" };
    // Events of shared objects are a writer's; it fires them before the packet.
    let (due, reading) = match moments {
        true => (
            format!(
                "	if (mr_unlikely(pkt->time >= self->shared->alarms.seen.next)) {{
		write{index}(self, pkt);
		return;
	}}
"
            ),
            statements(&|l| !l.contains("fire_due")),
        ),
        false => (String::new(), begin),
    };
    let as_reader = |name: &str, parameter: &str, call: &str| {
        format!(
            "
MR_INLINE void {name}(struct mr_instance *self, struct mr_packet *pkt{parameter})
{{
{undo_begin}{due}{reading}	if (mr_unlikely({call} == LOCK_RESTART))
		write{index}(self, pkt);
}}
"
        )
    };
    out.push_str(&as_reader(
        &format!("packet{index}"),
        "",
        &format!("{reader}(self, pkt{slot})"),
    ));
    out.push_str(&plain(burst, &format!("packet{index}(self, packets[i]);")));
    let _ = write!(
        out,
        "
static __attribute__((noinline)) void burst{index}_plain(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{}",
        around(burst, &format!("read{index}(self, packets, n);"))
    );
    let Some(gate) = Gate::of(unit, entry) else {
        return out;
    };
    // A key, too, may be made of the time that the prefetch pass saw.
    let (came, current) = if clock && entry.resume.is_some() {
        (
            "\t\t\tconst u64 came = packets[i]->time;\n\n",
            " && packets[i]->time == came",
        )
    } else {
        ("", "")
    };
    let (last, with_slot) = match &entry.resume {
        Some(resume) => (
            format!(
                "\t\t\tif (slots[i].site{current})\n\t\t\t\ttaken_up{index}(self, packets[i], &slots[i]);\n\t\t\telse\n\t\t\t\tpacket{index}(self, packets[i]);\n"
            ),
            format!("{resume}(self, pkt, slot)"),
        ),
        None => (
            format!("\t\t\ttaken_up{index}(self, packets[i], &slots[i]);\n"),
            format!("{reader}(self, pkt, slot)"),
        ),
    };
    out.push_str(&as_reader(
        &format!("taken_up{index}"),
        ", const struct slot *slot",
        &with_slot,
    ));
    let last = format!(
        "{came}\t\t\tlock_read_again({READ});
\t\t\tpackets[i]->core = self->core;
\t\t\tpackets[i]->commit = lock_commit_read(&self->shared->lock);
\t\t\tpackets[i]->time = lock_time_read({READ}, packets[i]->time);
{last}"
    );
    let (why, condition) = (gate.why, &gate.condition);
    let remark = " A token that a writer outdates is made anew.";
    out.push_str(&gate.passes(&format!("read{index}"), remark, "", &last));
    let _ = write!(
        out,
        "
/* {why} */
static void burst{index}(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{}",
        around(
            burst,
            &format!(
                "if ({condition})\n\t\tread{index}_passes(self, packets, n);\n\telse\n\t\tread{index}(self, packets, n);"
            )
        )
    );
    out
}

/// Packets one after another under the reader's line.
fn plain(burst: &Burst, each: &str) -> String {
    format!(
        "
static __attribute__((noinline)) void read{index}(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	for (u32 i = 0; i < n; i++) {{
		fetch_ahead(packets, i, n);
		lock_read_again({READ});
		packets[i]->core = self->core;
		packets[i]->commit = lock_commit_read(&self->shared->lock);
		packets[i]->time = lock_time_read({READ}, packets[i]->time);
		{each}
	}}
}}
",
        index = burst.index,
    )
}

/// A burst's beginning and end.
fn around(burst: &Burst, inside: &str) -> String {
    let age = |on: bool, name: &str| {
        if on {
            format!("\t{name}(self, packets[0]->time);\n")
        } else {
            String::new()
        }
    };
    format!(
        "{{
	if (n == 0)
		return;
{own}	lock_read({READ});
{shared}	{inside}
	lock_read_end({READ});
}}
",
        own = age(burst.ages, "age"),
        shared = age(!ageing(burst.unit).is_empty(), "age_shared"),
    )
}
