//! When a burst takes the prefetch passes, and the passes themselves.

use std::fmt::Write;

use millrace_object::program::ObjectId;

use super::module::Entry;
use super::objects::offers;
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
    /// the pass before it, whose answers are found for a batch at once
    pub before: Option<Box<Prefetch>>,
    /// the pass of what is linked behind the first element, which is a hint ([`super::later`])
    pub later: Option<Box<Prefetch>>,
    /// the C function of straight code in front of both ([`super::straight`])
    pub straight: Option<String>,
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
            before: None,
            later: None,
            straight: None,
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
    /// statements that find the tokens of a batch, of objects that find them at once
    at_once: String,
    /// the function of the pass before it, where these are found
    pub before: Option<&'a str>,
    /// the pass of what is linked behind the first element
    later: Option<LaterPass<'a>>,
    /// the C function of straight code in front of both
    straight: Option<&'a str>,
}

/// The pass of what is linked behind the first element.
struct LaterPass<'a> {
    /// its C function
    function: &'a str,
    /// the cases of its second pass, by site
    second: String,
    /// statements that find the tokens of a batch
    at_once: String,
}

impl<'a> Gate<'a> {
    /// Of an entry; none without a prefetch pass.
    pub fn of(unit: &Unit, entry: &'a Entry) -> Option<Gate<'a>> {
        let prefetch = entry.prefetch.as_ref()?;
        let before = prefetch.before.as_deref();
        let mut objects = prefetch.objects.clone();
        objects.extend(before.iter().flat_map(|b| &b.objects));
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
        let second = entries(unit, &prefetch.objects);
        let found = before.unwrap_or(prefetch);
        let at_once = all_at_once(unit, &found.objects);
        Some(Gate {
            before: before.map(|b| b.function.as_str()),
            later: prefetch.later.as_deref().map(|later| LaterPass {
                function: &later.function,
                second: entries(unit, &later.objects),
                at_once: all_at_once(unit, &later.objects),
            }),
            straight: prefetch.straight.as_deref(),
            at_once,
            pass: &prefetch.function,
            condition,
            why,
            second,
        })
    }

    /// The passes over a burst, as the function `NAME_passes`. `remark` ends its comment, `begin` stands at its beginning,
    /// and `last`, about `packets[i]` and `slots[i]`, is what the last pass does with a packet.
    pub fn passes(&self, name: &str, remark: &str, begin: &str, last: &str) -> String {
        let Gate {
            pass,
            second,
            at_once,
            before,
            later,
            straight,
            ..
        } = self;
        let (mut later_slots, mut later_first, mut later_entry) =
            <(String, String, String)>::default();
        let mut later_function = String::new();
        if let Some(LaterPass {
            function: later,
            second,
            at_once,
        }) = later
        {
            later_slots = "\tstruct slot later[MR_BATCH];\n".to_owned();
            // Behind straight code both passes are in one loop.
            later_first = match straight {
                Some(_) => String::new(),
                None => format!(
                    "\t\tfor (u32 i = 0; i < count; i++) {{
			later[i].site = 0;
			{later}(self, packets[i], &later[i]);
		}}
"
                ),
            };
            if !at_once.is_empty() {
                later_function = tokens(later, at_once);
                let _ = writeln!(later_first, "\t\t{later}_tokens(self, later, count);");
            }
            later_entry = format!(
                "\t\tfor (u32 i = 0; i < count; i++)
			{later}_entry(self, &later[i]);
"
            );
            later_function.push_str(&second_pass(later, second));
        }
        let slots = if before.is_some() { "early" } else { "slots" };
        let (tokens, find) = match at_once.as_str() {
            "" => (String::new(), String::new()),
            cases => (
                tokens(pass, cases),
                format!("\t\t{pass}_tokens(self, {slots}, count);\n"),
            ),
        };
        // Two passes: up to the answers that are found at once, and with them on.
        let both = straight.zip(later.as_ref());
        let (early, first) = match (before, both) {
            (None, Some((straight, later))) => (
                "",
                format!(
                    "\t\tfor (u32 i = 0; i < count; i++) {{
			int passes; /* that are done */

			fetch_ahead(packets, i, count);
			slots[i].site = 0;
			later[i].site = 0;
			passes = {straight}(self, packets[i], &slots[i], &later[i]);
			if (passes == 0) {{
				slots[i].site = 0;
				{pass}(self, packets[i], &slots[i]);
			}}
			if (passes < 2) {{
				later[i].site = 0;
				{}(self, packets[i], &later[i]);
			}}
		}}
{find}",
                    later.function
                ),
            ),
            (None, None) => (
                "",
                format!(
                    "\t\tfor (u32 i = 0; i < count; i++) {{
			fetch_ahead(packets, i, count);
			slots[i].site = 0;
			{pass}(self, packets[i], &slots[i]);
		}}
{find}"
                ),
            ),
            (Some(before), _) => (
                "\tstruct slot early[MR_BATCH];\n",
                format!(
                    "\t\tfor (u32 i = 0; i < count; i++) {{
			fetch_ahead(packets, i, count);
			early[i].site = 0;
			{before}(self, packets[i], &early[i]);
		}}
{find}		for (u32 i = 0; i < count; i++) {{
			slots[i].site = 0;
			{pass}(self, packets[i], &slots[i], &early[i]);
		}}
"
                ),
            ),
        };
        let entry_function = second_pass(pass, second);
        format!(
            "{tokens}{entry_function}{later_function}
/* Three passes, so that the misses of a batch overlap.{remark} */
static __attribute__((noinline)) void {name}_passes(struct mr_instance *self, struct mr_packet *const *packets, u32 n)
{{
	struct slot slots[MR_BATCH];
{early}{later_slots}
{begin}	while (n > 0) {{
		const u32 count = n < MR_BATCH ? n : MR_BATCH;

{first}{later_first}		for (u32 i = 0; i < count; i++)
			{pass}_entry(self, &slots[i]);
{later_entry}		for (u32 i = 0; i < count; i++) {{
{last}		}}
		packets += count;
		n -= count;
	}}
}}
"
        )
    }
}

/// The cases of a second pass, which prefetches entries: by object, the sites that a prefetch pass ends at.
fn entries(unit: &Unit, sites: &[ObjectId]) -> String {
    let mut objects = sites.to_vec();
    objects.sort_unstable();
    objects.dedup();
    let mut second = String::new();
    for object in &objects {
        for (site, _) in (1..).zip(sites).filter(|(_, at)| *at == object) {
            let _ = writeln!(second, "\tcase {site}:");
        }
        // Of what expires each core has stamps of its own (fastpath/sync/stamps.h).
        let declared = unit.program.objects.get(object.0);
        let expires = declared.is_some_and(|o| o.expire_after > 0);
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
            unit.kind(*object),
            unit.operands(*object)
        );
    }
    second
}

/// The function of a second pass, called as the first one with `_entry` behind.
fn second_pass(pass: &str, cases: &str) -> String {
    format!(
        "
static inline void {pass}_entry(struct mr_instance *self, struct slot *slot)
{{
	switch (slot->site) {{
{cases}	default:
		break;
	}}
}}
"
    )
}

/// Statements that find the tokens of a batch: of those sites whose objects find them at once.
fn all_at_once(unit: &Unit, sites: &[ObjectId]) -> String {
    let found = (1..).zip(sites).filter_map(|(site, object)| {
        let declaration = unit.program.objects.get(object.0)?;
        offers(declaration, "tokens")
            .then(|| at_once(site, unit.kind(*object), &unit.operands(*object)))
    });
    found.collect()
}

/// The tokens of one operation's keys, of those packets of a batch that the prefetch pass brought there.
fn at_once(site: u32, kind: &str, operands: &str) -> String {
    format!(
        "\tn = 0;
	for (u32 i = 0; i < count; i++) {{
		if (slots[i].site == {site}) {{
			keys[n] = slots[i].key;
			at[n++] = i;
		}}
	}}
	{kind}_tokens({operands}, keys, tokens, n);
	for (u32 i = 0; i < n; i++)
		slots[at[i]].token = tokens[i];
"
    )
}

/// The function that finds them.
fn tokens(pass: &str, cases: &str) -> String {
    format!(
        "
/* Behind the prefetch pass: tokens that a batch's keys are given at once. */
static inline void {pass}_tokens(const struct mr_instance *self, struct slot *slots, u32 count)
{{
	const u64 *keys[MR_BATCH];
	u64 tokens[MR_BATCH];
	u32 at[MR_BATCH], n;

{cases}}}
"
    )
}
