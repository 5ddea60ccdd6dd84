//! Entries of flows: until when a flow is known, by one stamp or by one for each rewriter on its way.
//!
//! A stamp for each rewriter is kept without branches: at k rewriters each may know the flow or not, which would be 2^k paths of the
//! function.

use std::fmt::Write as _;

use super::Emitter;
use crate::field::Word;
use crate::flows::{Ages, Becomes, Program};

impl Emitter<'_> {
    /// Whether entries have a stamp for each rewriter.
    pub(super) fn stamped(&self) -> bool {
        !self.of.flows.stamps.is_empty()
    }

    /// The rewriters that a packet passes that comes to an action, a bit each.
    pub(super) fn reach(&self, number: u32, program: Program) -> u32 {
        let action = self.of.actions.get(number);
        let passed = action.map_or(0, |a| usize::from(a.hops)).min(program.hops);
        let reach = (1_u32 << passed) - 1;
        // An answer meets them from the last one on.
        match program.back {
            true => reach << (program.hops - passed),
            false => reach,
        }
    }

    /// Notes which rewriters a packet passes that comes to an action.
    pub(super) fn passed(&mut self, number: u32, depth: usize) {
        let Some(program) = self.program.filter(|_| self.stamped()) else {
            return;
        };
        let reach = self.reach(number, program);
        for name in ["reach", "through"] {
            self.locals.insert(name.into(), "__u32");
        }
        self.say(depth, &format!("reach = {reach:#x};"));
        let through = reach.count_ones() as usize == program.hops;
        self.say(depth, &format!("through = {};", u8::from(through)));
        if self.of.flows.stamps.len() > 1 {
            self.locals.insert("ages".into(), "__u32");
            self.say(depth, &format!("ages = {};", program.ages));
        }
    }

    /// The entry and what works on it.
    pub(super) fn entry_text(&self) -> String {
        match self.stamped() {
            false => ENTRY.replace("CHOOSE", CHOOSE),
            true => {
                let hops = self.of.flows.most_hops;
                let all = (0..hops).fold(0_u64, |all, at| all | 1 << (4 * at));
                let at_once = if self.at_once() { AT_ONCE } else { "" };
                format!("{ENTRY_OF_STAMPS}{at_once}")
                    .replace("CHOOSE", CHOOSE)
                    .replace("HOPS", &hops.to_string())
                    .replace("EACH", &format!("{all:#x}ULL"))
            }
        }
    }

    /// How long flows and their words are kept.
    pub(super) fn times_text(&self, longest: u64) -> String {
        let mut text = format!(
            "\n#define LONGEST {longest}ULL /* any rewriter knows a flow behind a packet, ns */\n"
        );
        if self.of.flows.answered() {
            let every = longest / 8;
            let _ = writeln!(
                text,
                "#define NOTED_EVERY {every}ULL /* answers are told that a flow is there, ns */\n#define ANSWERED_FOR (LONGEST + NOTED_EVERY) /* its words are its own behind that */"
            );
        }
        text
    }

    /// The update of an entry behind a packet.
    pub(super) fn keep_text(&mut self) -> String {
        let noted = if self.of.flows.answered() { NOTED } else { "" };
        match self.stamped() {
            true => {
                let words = self.words();
                if !words.contains("older") {
                    self.locals.remove("older");
                }
                self.keep_stamps()
                    .replace("SERVER", self.server())
                    .replace("WORDS", &words)
            }
            false => KEEP
                .replace("NOTED", noted)
                .replace("SERVER", self.server()),
        }
    }

    /// Address and port of the server as answers have them: the packet's own where no rewriter writes them, by which a plan sees that
    /// both directions of a flow meet.
    fn server(&self) -> &'static str {
        let ways = self.of.flows.openings.values().flat_map(|o| &o.variants);
        let mut last = ways
            .flat_map(|v| v.ways.values())
            .filter_map(|w| w.hops.last());
        let own = [Becomes::Word(Word::Destination), Becomes::Word(Word::Dport)];
        match last.all(|hop| [hop.words[1], hop.words[3]] == own) {
            true => "\t\tto.destination = key.destination;\n\t\tto.dport = key.dport;\n",
            false => "",
        }
    }

    /// The choice of a flow's words. Where all flows have a range, or none, only that is said, so that a plan need not think of both.
    fn words(&self) -> String {
        let ways = self.of.flows.openings.values().flat_map(|o| &o.variants);
        let last = ways
            .flat_map(|v| v.ways.values())
            .filter_map(|w| w.hops.last());
        let ranged: Vec<bool> = last
            .map(|hop| { hop.words.iter() }.any(|w| matches!(w, Becomes::Range(..))))
            .collect();
        match (ranged.contains(&true), ranged.contains(&false)) {
            (true, true) => format!(
                "\t\tif (entry->range.addresses + entry->range.ports > 0) {{\n{RANGED}\t\t}} else {{\n{FIXED}\t\t}}\n"
            ),
            (true, false) => RANGED.to_owned(),
            _ => FIXED.to_owned(),
        }
    }

    /// Whether one stamp may stand for those of all rewriters: all flows pass as many, with the same ages.
    fn at_once(&self) -> bool {
        let flows = &self.of.flows;
        let variants = flows.openings.values().flat_map(|o| &o.variants);
        let mut ways = variants.flat_map(|v| v.ways.values());
        let same = match flows.stamps.as_slice() {
            [ages] => ages.iter().all(|age| Some(age) == ages.first()),
            _ => false,
        };
        same && ways.all(|way| way.hops.len() == flows.most_hops)
    }

    fn keep_stamps(&mut self) -> String {
        for name in ["only", "gone", "set", "clear"] {
            self.locals.insert(name.into(), "__u64");
        }
        let flows = &self.of.flows;
        let mut text = KEEP_STAMPS.to_owned();
        let hops = flows.most_hops;
        let at_once = self.at_once();
        let deep = if at_once { "\t\t" } else { "\t" };
        if at_once {
            let _ = write!(
                text,
                "\tif (through && !entry->apart) {{\n\t\tgone = touch(entry, 0, ~0ULL, 0, only, p->time, set, clear,\n\t\t\t     {});\n\t}} else {{\n\t\tspread(entry);\n",
                ages_text(flows.longest())
            );
        }
        if flows.early {
            for at in (0..hops).rev() {
                let _ = writeln!(
                    text,
                    "{deep}gone |= mask(reach >> {at} & 1) & only & reached(entry->until[{at}], p->time);"
                );
            }
            let _ = write!(
                text,
                "{deep}if (gone)\n{deep}\treturn DROP_BECAUSE(no_flow);\n"
            );
        }
        for (n, ages) in flows.stamps.iter().enumerate() {
            let several = flows.stamps.len() > 1;
            let tabs = if several {
                let _ = writeln!(text, "{deep}if (ages == {n}) {{");
                format!("{deep}\t")
            } else {
                deep.to_owned()
            };
            for (at, age) in ages.iter().enumerate().rev() {
                let _ = writeln!(
                    text,
                    "{tabs}gone = touch(entry, {at}, mask(reach >> {at} & 1), gone, only, p->time, set, clear,\n{tabs}\t     {});",
                    ages_text(*age)
                );
            }
            if several {
                let _ = writeln!(text, "{deep}}}");
            }
        }
        if at_once {
            text.push_str("\t\tentry->apart = differ(entry);\n\t}\n");
        }
        if !flows.early || at_once {
            text.push_str("\tif (gone)\n\t\treturn DROP_BECAUSE(no_flow);\n");
        }
        match text.contains("& is_tcp") {
            true => {
                self.locals.insert("is_tcp".into(), "__u64");
                text
            }
            // All protocols have the same ages.
            false => text.replace("\tis_tcp = mask(tcp);\n", ""),
        }
    }
}

/// How long a flow is known of which one side alone has sent data, both have, both have ended.
fn ages_text(age: Ages) -> String {
    let first = match age.other ^ age.nodata {
        0 => format!("{}ULL", age.other),
        change => format!("{}ULL ^ ({change}ULL & is_tcp)", age.other),
    };
    format!("{first}, {}ULL, {}ULL", age.tcp, age.done)
}

/// What is in both entries: words for a new flow.
const CHOOSE: &str = "/* The answer's words to a flow's new ones. */
MILLRACE_INLINE struct words reversed(const struct new_words *to, const struct words *key, __u16 last)
{
	return (struct words){ to->destination, to->source, to->dport, to->sport, key->protocol, (__u8)last, 0 };
}

/* Whether two are the same words. */
MILLRACE_INLINE _Bool same(const struct words *a, const struct words *b)
{
	return a->source == b->source && a->destination == b->destination && a->sport == b->sport &&
	       a->dport == b->dport && a->rewriter == b->rewriter;
}

/* Finds words of the range whose answers are nobody's: the packet's own port, then some at random. */
MILLRACE_INLINE _Bool choose(struct new_words *to, const struct words *key, struct range range, __u16 last)
{
	__u32 own = ntohs(to->sport) - range.port;
	struct words behind, *taken;

	MILLRACE_ROLLED
	for (__u32 probe = 0; probe < 64; probe++) {
		if (range.addresses > 1)
			to->source = htonl(range.address +
					   (__u32)((__u64)random32() * range.addresses >> 32));
		if (range.ports > 1 && (probe || !range.own || own >= range.ports))
			to->sport = htons(range.port +
					  (__u32)((__u64)random32() * range.ports >> 32));
		behind = reversed(to, key, last);
		taken = map_get(&answers, &behind);
		if (!taken || same(taken, key))
			return 1;
	}
	return 0;
}
";

const ENTRY: &str = "
/* A flow: what its packets and its answers become was decided when it was opened. */
struct entry {
	struct new_words to;
	__u16 program, back;
	__u64 until; /* absent from then on, ns */
	__u64 noted; /* when answers were told that the flow is there, ns */
	__u16 last; /* the last rewriter, which answers come to */
	__u8 spoke, ended; /* a bit a side: it sent data, it ended */
	__u32 answered; /* whether its answers are noted */
	__u32 port; /* the leased one */
	struct range range;
};

MAP(flows, struct words, struct entry, .capacity = CAPACITY, .expire_after = LONGEST);
ANSWERS

CHOOSE
/* A packet keeps a flow alive (RFC 9293, 3.1: which flags). */
MILLRACE_INLINE void touch(struct entry *entry, __u32 side, _Bool tcp, __u8 flags, _Bool data, __u64 now)
{
	__u8 own = 1 << side, ended = entry->ended, spoke = entry->spoke;
	__u64 age = AGE_OTHER;

	if (tcp) {
		if (flags & 4)
			ended = 3;
		else if (flags & 1)
			ended |= own;
		else if (flags & 2)
			ended &= ~own;
		if (data)
			spoke |= own;
		age = ended == 3 ? AGE_DONE : spoke == 3 ? AGE_TCP : AGE_NODATA;
		entry->ended = ended;
		entry->spoke = spoke;
	}
	entry->until = now + age;
}
";

const KEEP: &str = "	if (!entry) {
LEASE
		if (fresh.range.addresses + fresh.range.ports > 0) {
			if (!choose(&to, &key, fresh.range, fresh.last))
				return DROP_BECAUSE(no_words);
			behind = reversed(&to, &key, fresh.last);
		} else if (fresh.answered) {
			behind = reversed(&to, &key, fresh.last);
			flow = map_get(&answers, &behind);
			if (flow && !same(flow, &key)) {
				/* Without a range an older flow gives way. */
				older = *flow;
				map_delete(&flows, &older);
			}
		}
		fresh.to = to;
		fresh.noted = p->time;
		touch(&fresh, 0, tcp, flags, data, p->time);
		if (!map_put(&flows, &key, &fresh))
			return DROP_BECAUSE(table_full);
		if (fresh.answered && !map_put(&answers, &behind, &key)) {
			map_delete(&flows, &key);
			return DROP_BECAUSE(table_full);
		}
	} else {
		touch(entry, answer, tcp, flags, data, p->time);
REFRESHNOTED	}
";

/// Answers find a flow by its words behind its rewriters. That they are there is refreshed by packets of the flow, too, but not by each.
const NOTED: &str = "	if (!answer && entry->answered && p->time - entry->noted >= NOTED_EVERY) {
SERVER		behind = reversed(&to, &key, entry->last);
		map_refresh(&answers, &behind);
		entry->noted = p->time;
	}
";

/// Words of a range for a flow that comes to the last rewriter for the first time.
const RANGED: &str = "		if (!choose(&to, &key, entry->range, entry->last)) {
			map_delete(&flows, &key);
			return DROP_BECAUSE(no_words);
		}
		behind = reversed(&to, &key, entry->last);
";

/// Words without a range: an older flow gives way.
const FIXED: &str = "		behind = reversed(&to, &key, entry->last);
		flow = map_get(&answers, &behind);
		if (flow && !same(flow, &key)) {
			older = *flow;
			map_delete(&flows, &older);
			entry = map_get(&flows, &key);
			if (!entry)
				return DROP_BECAUSE(table_full);
		}
";

const ENTRY_OF_STAMPS: &str = "
/* A flow: what its packets and its answers become was decided when it was opened, by which rewriters it is known is not: packets
 * may have ended between two of them. */
struct entry {
	struct new_words to;
	__u16 program, back;
	__u16 last; /* the last rewriter, which answers come to */
	__u16 apart; /* whether rewriters know of it for different times, or different sides */
	struct range range;
	__u64 reserved; /* until when its words are its own, and answers find it, ns; 0: it has none */
	__u64 sides; /* four bits a rewriter: which sides sent data, which ended */
	__u64 until[HOPS]; /* when it is absent at a rewriter, ns; the first one's, and its sides, are those of all unless they are apart */
};

MAP(flows, struct words, struct entry, .capacity = CAPACITY, .expire_after = LONGEST);
ANSWERS

CHOOSE
/* All ones for 1, none for 0. The compiler is not to see which, or it makes two paths of it. */
MILLRACE_INLINE __u64 mask(__u64 bit)
{
	__asm__(\"\" : \"+r\"(bit));
	bit = 0 - bit;
	__asm__(\"\" : \"+r\"(bit));
	return bit;
}

/* All ones if a number is at least `first`; both are below 2^63. */
MILLRACE_INLINE __u64 reached(__u64 first, __u64 number)
{
	return ~mask((number - first) >> 63);
}

/* A packet comes to a rewriter, if `comes` says so and it is not lost at one before; one that comes to its flow's absence is lost, if
 * it is an answer (`only`), and opens the flow anew otherwise. `set` and `clear` are what it tells of its flow's sides; `age` is the age
 * of one of which one side alone has sent data. */
MILLRACE_INLINE __u64 touch(struct entry *entry, __u32 at, __u64 comes, __u64 gone, __u64 only, __u64 now, __u64 set,
			    __u64 clear, __u64 age, __u64 age_tcp, __u64 age_done)
{
	__u64 until = entry->until[at], all = entry->sides, unknown = reached(until, now), sides;

	gone |= comes & only & unknown;
	comes &= ~gone;
	sides = (all >> 4 * at & ~unknown & ~clear & 15) | set;
	age ^= (age ^ age_tcp) & mask(sides & sides >> 1 & 1);
	age ^= (age ^ age_done) & mask(sides >> 2 & sides >> 3 & 1);
	entry->until[at] = until ^ ((until ^ (now + age)) & comes);
	entry->sides = all ^ (((all >> 4 * at ^ sides) & 15 & comes) << 4 * at);
	return gone;
}
";

/// One stamp for all rewriters.
const AT_ONCE: &str = "
/* Gives each rewriter the stamp that stands for all of them, if one does. */
MILLRACE_INLINE void spread(struct entry *entry)
{
	__u64 same = mask((entry->apart & 1) ^ 1), all = (entry->sides & 15) * EACH;

	entry->sides ^= (entry->sides ^ all) & same;
	#pragma unroll
	for (__u32 at = 1; at < HOPS; at++)
		entry->until[at] ^= (entry->until[at] ^ entry->until[0]) & same;
}

/* Whether the stamps of two rewriters differ. */
MILLRACE_INLINE __u16 differ(const struct entry *entry)
{
	__u64 different = entry->sides ^ (entry->sides & 15) * EACH, negative;

	#pragma unroll
	for (__u32 at = 1; at < HOPS; at++)
		different |= entry->until[at] ^ entry->until[0];
	/* The compiler is not to see that this asks whether it is 0. */
	negative = 0 - different;
	__asm__(\"\" : \"+r\"(negative));
	return (different | negative) >> 63;
}
";

const KEEP_STAMPS: &str = "	if (!entry) {
		fresh.to = to;
		if (!map_put(&flows, &key, &fresh))
			return DROP_BECAUSE(table_full);
		entry = map_get(&flows, &key);
		if (!entry)
			return DROP_BECAUSE(table_full);
	}
	if (through && !answer && p->time >= entry->reserved) {
		/* It is the first that comes to the last rewriter, or the last one does not know it any more. */
SERVERWORDS		if (!map_put(&answers, &behind, &key)) {
			map_delete(&flows, &key);
			return DROP_BECAUSE(table_full);
		}
		entry->to = to;
		entry->reserved = p->time + ANSWERED_FOR;
	} else if (through && !answer && entry->reserved - p->time <= LONGEST) {
SERVER		behind = reversed(&to, &key, entry->last);
		map_refresh(&answers, &behind);
		entry->reserved = p->time + ANSWERED_FOR;
	}
	only = mask(answer);
	gone = 0;
	is_tcp = mask(tcp);
	/* RFC 9293, 3.1: which flags. */
	set = (12 & mask(flags >> 2 & 1)) | (__u64)(flags & 1) << (2 + answer) | (__u64)data << answer;
	clear = (__u64)(flags >> 1 & ~flags & ~(flags >> 2) & 1) << (2 + answer);
";
