//! When a burst takes the prefetch passes, and the passes themselves.

use std::fmt::Write;

use millrace_object::program::ObjectId;

use super::module::Entry;
use super::prefetch::PrefetchPass;
use super::resume::Resume;
use super::unit::Unit;

/// A prefetch pass's result, without its steps.
pub struct Prefetch {
    /// the prefetch pass's C function
    pub function: String,
    /// by site number less 1
    pub objects: Vec<ObjectId>,
    /// how many steps it has
    pub steps: usize,
}

/// From this many steps on, the passes pay even when all state is in the cache, if the program goes on
/// from its prefetch pass: what one packet waits for, the next ones fill. A shorter program overlaps by itself.
/// Passes against none at 1K flows (docs/measurements/bench.md, `gate`): 36 steps 1.12, 49 steps 0.90, 557 steps 0.84.
const LONG: usize = 40;

impl Prefetch {
    /// What is needed of a prefetch pass once it is written.
    pub fn of(pass: &PrefetchPass, function: String) -> Prefetch {
        Prefetch {
            function,
            objects: pass.objects.clone(),
            steps: pass.slice.runs(),
        }
    }
}

/// The slot that a prefetch pass fills, and what it is good for.
pub fn slot<'a>(words: u32, rests: impl Iterator<Item = &'a Resume<'a>>) -> String {
    let (mut numbers, mut pointers, mut bytes) = (0, 0, 0);
    for rest in rests {
        let room = rest.room();
        numbers = numbers.max(room.0);
        pointers = pointers.max(room.1);
        bytes = bytes.max(room.2);
    }
    let mut kept = String::new();
    for (count, text) in [
        (numbers, format!("\tu64 number[{numbers}];\n")),
        (pointers, format!("\tu8 *pointer[{pointers}];\n")),
        (
            bytes as usize,
            format!("\t_Alignas(8) u8 stack[{bytes}];\n"),
        ),
    ] {
        if count > 0 {
            kept.push_str(&text);
        }
    }
    format!(
        "
/* What a prefetch pass found of one packet: at which operation (0: none), with which key, its token, and what the
 * rest of the program reads of registers and stack. */
struct slot {{
	u64 token;
	u64 key[{words}];
{kept}	u32 site;
}};

/* Whether the slot's token is the one of this key at this operation. */
MR_INLINE int slot_holds(const struct slot *slot, u32 site, const u64 *key, u32 words)
{{
	return slot && slot->site == site && mr_words_equal(slot->key, key, words);
}}
"
    )
}

/// When a burst takes the prefetching passes, and what the second of them does.
pub struct Gate<'a> {
    /// the prefetch pass's C function
    pub pass: &'a str,
    /// the condition, about `self` and `n`
    pub condition: String,
    /// its reason
    pub why: &'static str,
    /// the cases of the second pass, by site
    pub second: String,
}

impl<'a> Gate<'a> {
    /// Of an entry; none without a prefetch pass.
    pub fn of(unit: &Unit, entry: &'a Entry) -> Option<Gate<'a>> {
        let prefetch = entry.prefetch.as_ref()?;
        let mut objects = prefetch.objects.clone();
        objects.sort_unstable();
        objects.dedup();
        let kind = |object: ObjectId| unit.kind(object);
        let cold: Vec<String> = objects
            .iter()
            .map(|o| format!("{}_cold({})", kind(*o), unit.operands(*o)))
            .collect();
        let (condition, why) = if entry.resume.is_some() && prefetch.steps >= LONG {
            (
                "n >= MR_FEW".to_owned(),
                "A few packets have nothing to overlap.",
            )
        } else {
            (
                format!("n >= MR_FEW && ({})", cold.join(" || ")),
                "A few packets have nothing to overlap; while the state fits the cache the passes would cost more than they save.",
            )
        };
        let mut second = String::new();
        for object in &objects {
            for (site, _) in (1..).zip(&prefetch.objects).filter(|(_, at)| *at == object) {
                let _ = writeln!(second, "\tcase {site}:");
            }
            // Of what expires each core has stamps of its own (fastpath/sync/stamps.h).
            let expires = unit
                .program
                .objects
                .get(object.0)
                .is_some_and(|o| o.expire_after > 0);
            let stamped =
                unit.is_shared(*object) && expires && unit.offers(*object, "prefetch_entry_of");
            let (of, core) = if stamped {
                ("_of", ", self->core")
            } else {
                ("", "")
            };
            let _ = writeln!(
                second,
                "\t\tslot->token = {}_prefetch_entry{of}({}, slot->token{core});\n\t\tbreak;",
                kind(*object),
                unit.operands(*object)
            );
        }
        Some(Gate {
            pass: &prefetch.function,
            condition,
            why,
            second,
        })
    }

    /// The passes over a burst, as the function `NAME_passes`. `remark` ends its comment, `begin` stands at its beginning,
    /// and `last`, about `packets[i]` and `slots[i]`, is what the last pass does with a packet.
    pub fn passes(&self, name: &str, remark: &str, begin: &str, last: &str) -> String {
        let Gate { pass, second, .. } = self;
        format!(
            "
static inline void {pass}_entry(struct mr_instance *self, struct slot *slot)
{{
	switch (slot->site) {{
{second}	default:
		break;
	}}
}}

/* Three passes, so that the misses of a batch overlap.{remark} */
static __attribute__((noinline)) void {name}_passes(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	struct slot slots[MR_BATCH];

{begin}	while (n > 0) {{
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

		for (u32 i = 0; i < count; i++) {{
			fetch_ahead(packets, i, count);
			slots[i].site = 0;
			{pass}(self, packets[i], &slots[i]);
		}}
		for (u32 i = 0; i < count; i++)
			{pass}_entry(self, &slots[i]);
		for (u32 i = 0; i < count; i++) {{
{last}		}}
		packets += count;
		n -= count;
	}}
}}
"
        )
    }
}
