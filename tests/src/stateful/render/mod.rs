//! Programs as C. What comes out is short, so that a person can look at a failure.

mod block;
mod headers;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::case::{
    Action, Block, Dialect, Family, Key, Kind, Leak, Mismatch, Object, Otherwise, Program,
    Protocol, Shape, Source, Value,
};
use super::sets::around;
use headers::{GATHER_BEGIN, HANDLERS, TAIL, V4_FIELDS, XDP, declared, six, v4};

/// The window of [`Action::Window`] and, as a power of two, the time between two tokens of [`Action::Bucket`], in units
/// of 1,024 ns: a replay may give a packet a time that is less than a unit later (`judge::reordered`).
const WINDOW: u64 = 300_000;
const TOKEN: u32 = 15;

/// Bytes of a frame that every packet has which a program looks at: Ethernet and the addresses behind it.
const PLACES: u32 = 12;

/// The source of a program.
#[must_use]
pub fn source(program: &Program) -> String {
    Renderer { program }.whole()
}

struct Renderer<'a> {
    program: &'a Program,
}

fn unsigned(bytes: u8) -> String {
    format!("__u{}", 8 * u32::from(bytes))
}

impl Renderer<'_> {
    fn xdp(&self) -> bool {
        self.program.dialect == Dialect::Xdp
    }

    fn whole(&self) -> String {
        let mut out = String::new();
        out.push_str(if self.xdp() { XDP } else { HANDLERS });
        for shape in self.shapes() {
            out.push_str(structure(shape));
        }
        for (i, object) in self.program.objects.iter().enumerate() {
            if self.has(|b| objects_of(&b.source).contains(&Some(i))) {
                self.object(&mut out, i, object);
            }
        }
        self.beside(&mut out);
        if self.xdp() {
            self.xdp_function(&mut out);
        } else {
            self.handler(&mut out);
        }
        out
    }

    fn shapes(&self) -> Vec<Shape> {
        let mut all: Vec<Shape> = Vec::new();
        let keys = self.program.blocks.iter().filter_map(|b| key_of(&b.source));
        let shapes = self.program.objects.iter().map(|o| o.shape);
        for shape in shapes.chain(keys.map(shape_of)) {
            let own = !matches!(shape, Shape::Word | Shape::Flow);
            if own && !all.contains(&shape) {
                all.push(shape);
            }
        }
        all
    }

    fn has(&self, is: impl Fn(&Block) -> bool) -> bool {
        self.program.blocks.iter().any(is)
    }

    fn object(&self, out: &mut String, i: usize, object: &Object) {
        let Value { a, b, packed } = object.value;
        let rest = (a + b) % 8;
        let (a, b) = (unsigned(a), unsigned(b));
        // What a compiler would leave out is never written, and may not be compared.
        let filler = match rest {
            _ if packed => String::new(),
            0 => String::new(),
            n => format!(" __u8 zero[{}];", 8 - n),
        };
        let (front, tail) = if packed {
            ("__u8 tag; ", " __attribute__((packed))")
        } else {
            ("", "")
        };
        let _ = writeln!(
            out,
            "struct v{i} {{ {front}__u64 t; {a} a; {b} b;{filler} }}{tail};"
        );
        let key = c_type(object.shape);
        let capacity = object.capacity;
        if !self.xdp() {
            let expires = match object.expires {
                0 => String::new(),
                ms => format!(", .expire_after = MILLISECONDS({ms})"),
            };
            let line = match object.kind {
                Kind::Array => format!("VECTOR(m{i}, struct v{i}, .capacity = {capacity});"),
                _ => format!("MAP(m{i}, {key}, struct v{i}, .capacity = {capacity}{expires});"),
            };
            let _ = writeln!(out, "{line}\n");
            return;
        }
        let kind = match object.kind {
            Kind::Hash => "HASH",
            Kind::Lru => "LRU_HASH",
            Kind::Array => "ARRAY",
            Kind::PercpuArray => "PERCPU_ARRAY",
            Kind::PercpuHash => "PERCPU_HASH",
            Kind::PercpuLru => "LRU_PERCPU_HASH",
            Kind::Global => {
                let _ = writeln!(out, "static struct v{i} m{i}[{capacity}];\n");
                return;
            }
            Kind::Nested => {
                let _ = write!(
                    out,
                    "struct inner{i} {{\n\t__uint(type, BPF_MAP_TYPE_ARRAY);\n\t__uint(max_entries, {capacity});\n\
                     \t__type(key, __u32);\n\t__type(value, struct v{i});\n}} n{i} SEC(\".maps\");\n\
                     struct {{\n\t__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);\n\t__uint(max_entries, 1);\n\
                     \t__type(key, __u32);\n\t__array(values, struct inner{i});\n}} m{i} SEC(\".maps\") = \
                     {{ .values = {{ &n{i} }} }};\n\n"
                );
                return;
            }
        };
        let _ = write!(
            out,
            "struct {{\n\t__uint(type, BPF_MAP_TYPE_{kind});\n\t__uint(max_entries, {capacity});\n\
             \t__type(key, {key});\n\t__type(value, struct v{i});\n}} m{i} SEC(\".maps\");\n\n"
        );
    }

    /// What blocks need beside the objects with values.
    fn beside(&self, out: &mut String) {
        let map = |out: &mut String, name: &str, kind: &str, body: &str| {
            let _ = write!(
                out,
                "struct {{\n\t__uint(type, BPF_MAP_TYPE_{kind});\n{body}}} {name} SEC(\".maps\");\n\n"
            );
        };
        let entries = |n: u32| format!("\t__uint(max_entries, {n});\n");
        let records = [Leak::Record, Leak::RecordLength, Leak::RecordWhether];
        if self.has(|b| records.contains(&b.leak)) {
            map(out, "records", "RINGBUF", &entries(1 << 20));
        }
        if self.has(|b| b.source == Source::Ring) {
            map(out, "ring", "RINGBUF", &entries(4096));
        }
        if self.has(|b| b.source == Source::RingQuery) {
            map(out, "endless", "RINGBUF", &entries(1 << 20));
        }
        if self.has(|b| b.leak == Leak::PerfLength) {
            let body = "\t__uint(key_size, 4);\n\t__uint(value_size, 4);\n";
            map(out, "events", "PERF_EVENT_ARRAY", body);
        }
        for (name, kind) in [("queue", "QUEUE"), ("stack", "STACK")] {
            let is = |b: &Block| match b.source {
                Source::Queue => name == "queue",
                Source::Stack => name == "stack",
                _ => false,
            };
            if self.has(is) {
                let body = format!("{}\t__type(value, __u32);\n", entries(64));
                map(out, name, kind, &body);
            }
        }
        if self.has(|b| matches!(b.source, Source::Bloom(_))) {
            let body = format!("{}\t__type(value, __u32);\n", entries(4096));
            map(out, "bloom", "BLOOM_FILTER", &body);
        }
        if self.has(|b| b.leak == Leak::TailCall) {
            out.push_str(TAIL);
        }
        if self.has(|b| b.leak == Leak::Global) {
            out.push_str("__u64 seen;\n\n");
        }
        if self.has(|b| matches!(b.source, Source::Lease(_))) {
            out.push_str("struct leased { __u32 host; };\n");
            out.push_str("ALLOCATOR(leases, struct leased, .capacity = 4096, .first = 20000);\n\n");
        }
        if self.has(|b| matches!(b.source, Source::Leased { .. })) {
            let cut = |b: &Block| {
                matches!(
                    b.source,
                    Source::Leased {
                        mismatch: Mismatch::Cut,
                        ..
                    }
                )
            };
            let few = self.has(cut);
            out.push_str(&declared(few));
        }
        for (i, b) in self.program.blocks.iter().enumerate() {
            if let Source::Sketch(key) = b.source {
                let key = c_type(self.shape(key));
                let _ = writeln!(out, "SKETCH(s{i}, {key}, .rows = 4, .capacity = 65536);\n");
            }
        }
    }

    fn xdp_function(&self, out: &mut String) {
        let parse = &self.program.parse;
        let other = "return XDP_PASS;";
        if parse.gathered && parse.family == Family::V4 {
            out.push_str(GATHER_BEGIN);
            out.push_str(&v4(parse, "ctx->data", "ctx->data_end", "return -1;"));
            out.push_str(
                "\tf->src = ip->saddr;\n\tf->dst = ip->daddr;\n\tf->proto = ip->protocol;\n\tf->ttl = ip->ttl;\n",
            );
            if parse.protocol != Protocol::NoPorts {
                out.push_str("\tf->sport = l4[0];\n\tf->dport = l4[1];\n");
            }
            out.push_str("\treturn 0;\n}\n\n");
        }
        out.push_str("SEC(\"xdp\")\nint function(struct xdp_md *ctx)\n{\n");
        out.push_str("\t__u32 in = ctx->ingress_ifindex - 1;\n");
        match (parse.family, parse.gathered) {
            (Family::V4, true) => {
                out.push_str(
                    "\tstruct fields f = {};\n\n\tif (gather(ctx, &f))\n\t\treturn XDP_PASS;\n\
                     \t__u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;\n\
                     \tif (data + 34 > end)\n\t\treturn XDP_PASS;\n\
                     \t__u32 src = f.src, dst = f.dst, proto = f.proto, ttl = f.ttl;\n\
                     \t__u16 sport = f.sport, dport = f.dport;\n",
                );
            }
            (Family::V4, false) => {
                out.push_str(&v4(parse, "ctx->data", "ctx->data_end", other));
                out.push_str(V4_FIELDS);
                self.ports(out);
            }
            _ => {
                out.push_str(&six(parse, "ctx->data", "ctx->data_end", other));
                self.ports(out);
            }
        }
        let now = if self.program.clock {
            "bpf_ktime_get_ns() >> 10"
        } else {
            "1"
        };
        let _ = writeln!(out, "\t__u64 now = {now}, len = end - data;");
        let verdict = match self.program.verdict {
            Otherwise::Pass => "XDP_PASS",
            Otherwise::Back => "XDP_TX",
            Otherwise::Peer => "XDP_REDIRECT",
        };
        let _ = writeln!(out, "\tint verdict = {verdict}, out = 2 - in;");
        self.blocks(out);
        if let Some(i) = self.summed() {
            let _ = writeln!(out, "\tverdict = XDP_DROP + (r{i} & 1);");
        }
        out.push_str(
            "\treturn verdict == XDP_REDIRECT ? bpf_redirect(out, 0) : verdict;\n}\n\n\
             char _license[] SEC(\"license\") = \"GPL\";\n",
        );
    }

    fn ports(&self, out: &mut String) {
        out.push_str(
            match (self.program.parse.protocol, self.program.parse.family) {
                (Protocol::NoPorts, _) | (_, Family::Ethernet | Family::Flow) => {
                    "\t__u16 sport = 0, dport = 0;\n"
                }
                _ => "\t__u16 sport = l4[0], dport = l4[1];\n",
            },
        );
    }

    fn handler(&self, out: &mut String) {
        let parse = &self.program.parse;
        let other = "return FORWARD(peer(p));";
        let sets = self.program.sets.map(around);
        if let Some((before, _)) = &sets {
            out.push_str(before);
        }
        out.push_str(match sets {
            Some(_) => "MILLRACE_INLINE int work(struct packet *p)\n{\n\t__u32 in = p->port;\n",
            None => "ON_PACKET(p)\n{\n\t__u32 in = p->port;\n",
        });
        match parse.family {
            Family::Flow => {
                out.push_str(
                    "\tstruct flow f;\n\n\tif (!packet_flow(p, &f))\n\t\treturn FORWARD(peer(p));\n\
                     \t__u8 *data = packet_bytes(p, 0, 34);\n\tif (!data)\n\t\treturn FORWARD(peer(p));\n\
                     \t__u32 src = f.src.words[1] >> 32, dst = f.dst.words[1] >> 32, proto = f.protocol, ttl = 0;\n\
                     \t__u16 sport = f.sport, dport = f.dport;\n",
                );
            }
            Family::V4 => {
                out.push_str(&v4(parse, "p->data", "p->data_end", other));
                out.push_str(V4_FIELDS);
                self.ports(out);
            }
            _ => {
                out.push_str(&six(parse, "p->data", "p->data_end", other));
                self.ports(out);
            }
        }
        let now = if self.program.clock {
            "p->time >> 10"
        } else {
            "1"
        };
        let _ = writeln!(out, "\t__u64 now = {now}, len = packet_length(p);");
        let out_port = match self.program.verdict {
            Otherwise::Peer | Otherwise::Back => "in ^ 1",
            Otherwise::Pass => "0",
        };
        let _ = writeln!(out, "\tint drop = 0, out = {out_port};");
        self.blocks(out);
        let otherwise = match self.program.verdict {
            _ if self.summed().is_some() => "FORWARD(out)",
            Otherwise::Pass => "PASS",
            _ => "FORWARD(out)",
        };
        let _ = writeln!(
            out,
            "\tif (drop)\n\t\treturn DROP_BECAUSE(refused);\n\treturn {otherwise};\n}}"
        );
        if let Some((_, behind)) = sets {
            out.push('\n');
            out.push_str(&behind);
        }
    }

    fn blocks(&self, out: &mut String) {
        let count = self.program.blocks.len();
        if count > 0 {
            let names: Vec<String> = (0..count).map(|i| format!("r{i} = 0")).collect();
            let _ = writeln!(out, "\t__u64 {};\n", names.join(", "));
        }
        for (i, block) in self.program.blocks.iter().enumerate() {
            match self.condition(block.when) {
                Some(condition) => {
                    let _ = writeln!(out, "\tif ({condition}) {{");
                }
                None => out.push_str("\t{\n"),
            }
            let mut body = String::new();
            self.source_of(&mut body, i, block);
            self.leak(&mut body, i, block.leak);
            for line in body.lines() {
                let _ = writeln!(out, "\t\t{line}");
            }
            out.push_str("\t}\n");
        }
        // Behind these no pointer into the packet holds.
        for (i, block) in self.program.blocks.iter().enumerate() {
            match block.leak {
                Leak::Tail if self.xdp() => {
                    let _ = writeln!(out, "\tbpf_xdp_adjust_tail(ctx, -(int)(r{i} & 7));");
                }
                Leak::Head if self.xdp() => {
                    let _ = writeln!(out, "\tbpf_xdp_adjust_head(ctx, -(int)(r{i} & 3));");
                }
                _ => {}
            }
        }
    }

    /// The block whose number is added to the verdict.
    fn summed(&self) -> Option<usize> {
        let mut blocks = self.program.blocks.iter();
        blocks.position(|b| b.leak == Leak::Verdict)
    }
}

/// Whether an action needs `t` as a number of its own, of which none is aligned in packed values.
#[must_use]
pub fn atomic(action: Action) -> bool {
    matches!(
        action,
        Action::AtomicAdd | Action::Fetch | Action::AtomicOwn | Action::Exchange
    )
}

/// The objects that a source touches.
fn objects_of(source: &Source) -> [Option<usize>; 2] {
    match source {
        Source::Value { object, .. }
        | Source::First { object, .. }
        | Source::Delete { object, .. }
        | Source::Loop { object, .. } => [Some(*object), None],
        Source::Through { via, object, .. } => [Some(*via), Some(*object)],
        _ => [None, None],
    }
}

/// The key that a source is reached by.
#[must_use]
pub fn key_of(source: &Source) -> Option<Key> {
    match source {
        Source::Value { key, .. }
        | Source::First { key, .. }
        | Source::Delete { key, .. }
        | Source::Through { key, .. }
        | Source::Loop { key, .. }
        | Source::Bloom(key)
        | Source::Lease(key)
        | Source::Sketch(key) => Some(*key),
        _ => None,
    }
}

/// The C type of a key, where nobody says otherwise.
#[must_use]
pub fn shape_of(key: Key) -> Shape {
    match key {
        Key::Pair | Key::Ordered | Key::Peers => Shape::Pair,
        Key::Tuple | Key::Reversed | Key::Conversation => Shape::Tuple,
        Key::Source | Key::Destination => Shape::Endpoint,
        Key::MacSrc | Key::MacDst => Shape::Mac,
        Key::SixSrc | Key::SixDst | Key::SixNet => Shape::Six,
        _ => Shape::Word,
    }
}

fn c_type(shape: Shape) -> &'static str {
    match shape {
        Shape::Word => "__u32",
        Shape::Pair => "struct pair",
        Shape::Tuple => "struct tuple",
        Shape::Endpoint => "struct endpoint",
        Shape::Mac => "struct mac6",
        Shape::Six => "struct six",
        Shape::Flow => "struct flow",
    }
}

fn structure(shape: Shape) -> &'static str {
    match shape {
        Shape::Word | Shape::Flow => "",
        Shape::Pair => "struct pair { __u32 first, second; };\n",
        Shape::Tuple => "struct tuple { __u32 src, dst; __u16 sport, dport; __u32 proto; };\n",
        Shape::Endpoint => "struct endpoint { __u32 address; __u16 port; __u16 proto; };\n",
        Shape::Mac => "struct mac6 { __u8 bytes[6]; };\n",
        Shape::Six => "struct six { __u32 words[4]; };\n",
    }
}
/// Kinds of state that a program has, each once, for counts.
#[must_use]
pub fn kinds(program: &Program) -> BTreeSet<String> {
    let objects = program.objects.iter().map(|o| format!("{:?}", o.kind));
    objects.collect()
}
