//! Programs as C. What comes out is short, so that a person can look at a failure.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::case::{
    Action, Amount, Block, Dialect, Family, HeaderLength, Held, Key, Kind, Leak, Mismatch, Miss,
    Object, Otherwise, Parse, Program, Protocol, Shape, Source, Value, When,
};

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
        out.push_str("ON_PACKET(p)\n{\n\t__u32 in = p->port;\n");
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

    fn condition(&self, when: When) -> Option<String> {
        Some(match when {
            When::Always => return None,
            When::Port(port) => format!("in == {port}"),
            When::Udp => "proto == 17".to_owned(),
            When::To(port) if self.xdp() => format!("dport == bpf_htons({port})"),
            When::To(port) => format!("dport == htons({port})"),
            When::Odd(block) => format!("r{block} & 1"),
        })
    }

    fn source_of(&self, out: &mut String, i: usize, block: &Block) {
        match &block.source {
            Source::Value {
                object,
                key,
                miss,
                action,
                amount,
            } => self.value(out, i, (*object, *key), *miss, (*action, *amount)),
            Source::First { object, key } => {
                let init = format!("(struct v{object}){{ .t = 1, .a = 1 }}");
                self.key(out, i, *key, Some(*object));
                if self.xdp() {
                    let _ = writeln!(out, "struct v{object} one = {init};");
                    let _ = writeln!(
                        out,
                        "r{i} = !bpf_map_update_elem(&m{object}, &k{i}, &one, BPF_NOEXIST);"
                    );
                } else {
                    let _ = writeln!(out, "if (!map_get(&m{object}, &k{i})) {{");
                    let _ = writeln!(
                        out,
                        "\tmap_put(&m{object}, &k{i}, &{init});\n\tr{i} = 1;\n}}"
                    );
                }
            }
            Source::Delete { object, key } => {
                self.key(out, i, *key, Some(*object));
                if self.xdp() {
                    let _ = writeln!(out, "r{i} = !bpf_map_delete_elem(&m{object}, &k{i});");
                } else {
                    let _ = writeln!(out, "r{i} = map_delete(&m{object}, &k{i});");
                }
            }
            Source::Queue => {
                out.push_str("__u32 mine = dport, theirs = 0;\nif (src & 1)\n\tbpf_map_push_elem(&queue, &mine, BPF_EXIST);\n");
                let _ = writeln!(
                    out,
                    "else if (!bpf_map_pop_elem(&queue, &theirs))\n\tr{i} = theirs;"
                );
            }
            Source::Stack => {
                out.push_str("__u32 mine = len, top = 0;\nif (dst & 0x01000000)\n\tbpf_map_push_elem(&stack, &mine, BPF_EXIST);\n");
                let _ = writeln!(out, "if (!bpf_map_peek_elem(&stack, &top))\n\tr{i} = top;");
            }
            Source::Bloom(key) => {
                self.key(out, i, *key, None);
                let _ = writeln!(out, "r{i} = !bpf_map_peek_elem(&bloom, &k{i});");
                let _ = writeln!(out, "if (!r{i})\n\tbpf_map_push_elem(&bloom, &k{i}, 0);");
            }
            Source::Ring => {
                let _ = writeln!(
                    out,
                    "__u64 *room = bpf_ringbuf_reserve(&ring, 512, 0);\nr{i} = !room;\nif (room) {{\n\
                     \troom[0] = src;\n\tbpf_ringbuf_submit(room, 0);\n}}"
                );
            }
            Source::RingQuery => {
                // The writer's position: what is left for the reader depends on how far it is.
                let _ = writeln!(
                    out,
                    "__u64 mark[7] = {{ src }};\nr{i} = bpf_ringbuf_query(&endless, BPF_RB_PROD_POS) >> 6;\n\
                     bpf_ringbuf_output(&endless, mark, sizeof(mark), 0);"
                );
            }
            Source::Cpu => {
                let _ = writeln!(out, "r{i} = bpf_get_smp_processor_id();");
            }
            Source::Random => {
                let _ = writeln!(out, "r{i} = bpf_get_prandom_u32();");
            }
            Source::Time => {
                let _ = writeln!(out, "r{i} = now >> 10;");
            }
            Source::Ingress => {
                let _ = writeln!(out, "r{i} = in;");
            }
            Source::Length => {
                let _ = writeln!(out, "r{i} = len;");
            }
            Source::Lease(key) => {
                let _ = key;
                let _ = writeln!(
                    out,
                    "__s64 number = allocator_lease(&leases, &(struct leased){{ src }});\n\
                     r{i} = number < 0;"
                );
            }
            Source::Leased { held, mismatch } => out.push_str(&leased(i, *held, *mismatch)),
            Source::Through {
                via,
                key,
                object,
                number,
                together,
            } => {
                self.key(out, i, *key, Some(*via));
                self.through(out, i, [*via, *object], *number, *together);
            }
            Source::Sketch(key) => {
                self.key(out, i, *key, None);
                let _ = writeln!(out, "r{i} = sketch_add(&s{i}, &k{i}, 1);");
            }
        }
    }

    /// A counter of the second object, under what an entry of the first one holds.
    fn through(
        &self,
        out: &mut String,
        i: usize,
        [via, object]: [usize; 2],
        number: Key,
        together: bool,
    ) {
        let (get, put, once) = match self.xdp() {
            true => (
                "bpf_map_lookup_elem",
                "bpf_map_update_elem",
                ", BPF_NOEXIST",
            ),
            false => ("map_get", "map_put", ""),
        };
        let number = self.expression(number);
        let make = |object: usize, key: &str, a: &str| {
            format!(
                "struct v{object} fresh = {{ .a = {a} }};\n{put}(&m{object}, &{key}, &fresh{once});\n"
            )
        };
        let count = |key: &str| {
            format!(
                "struct v{object} *w = {get}(&m{object}, &{key});\nif (w) {{\n\tr{i} = w->a;\n\tw->a = r{i} + 1;\n\
                 }} else {{\n{}}}\n",
                indented(&make(object, key, "1"))
            )
        };
        let mut first = format!(
            "__u32 number = {number};\n{}",
            make(via, &format!("k{i}"), "number")
        );
        if together {
            let _ = write!(first, "{{\n{}}}\n", indented(&count("number")));
        }
        let _ = write!(
            out,
            "struct v{via} *v = {get}(&m{via}, &k{i});\nif (!v) {{\n{}}} else {{\n\t__u32 number = v->a;\n{}}}\n",
            indented(&first),
            indented(&count("number"))
        );
    }

    fn value(
        &self,
        out: &mut String,
        i: usize,
        (object, key): (usize, Key),
        miss: Miss,
        (action, amount): (Action, Amount),
    ) {
        let Some(declared) = self.program.objects.get(object) else {
            return;
        };
        self.key(out, i, key, Some(object));
        let amount = match amount {
            Amount::One => "1".to_owned(),
            Amount::Len => "len".to_owned(),
            Amount::Dport => "dport".to_owned(),
            Amount::Of(block) => format!("r{block}"),
        };
        if action == Action::Put {
            let fresh = format!("struct v{object} fresh = {{ .t = 7, .a = {amount} }};");
            let put = match (self.xdp(), declared.kind) {
                (true, _) => format!("bpf_map_update_elem(&m{object}, &k{i}, &fresh, BPF_ANY);"),
                (false, _) => format!("map_put(&m{object}, &k{i}, &fresh);"),
            };
            let _ = writeln!(out, "{fresh}\n{put}");
            return;
        }
        let get = |refresh: bool| match (self.xdp(), declared.kind) {
            (true, Kind::Global) => format!("&m{object}[k{i} % {}]", declared.capacity),
            (true, Kind::Nested) => format!("bpf_map_lookup_elem(inner, &k{i})"),
            (true, _) => format!("bpf_map_lookup_elem(&m{object}, &k{i})"),
            (false, Kind::Array) => format!("vector_at(&m{object}, k{i})"),
            (false, _) if refresh => format!("map_refresh(&m{object}, &k{i})"),
            (false, _) => format!("map_get(&m{object}, &k{i})"),
        };
        if declared.kind == Kind::Nested && self.xdp() {
            let _ = writeln!(
                out,
                "__u32 zero = 0;\nvoid *inner = bpf_map_lookup_elem(&m{object}, &zero);\nif (!inner)\n\treturn XDP_ABORTED;"
            );
        }
        let _ = writeln!(out, "struct v{object} *v = {};", get(amount != "1"));
        let body = act(action, i, &amount, declared.value);
        if declared.kind.indexed() {
            if declared.kind == Kind::Global {
                out.push_str(&body);
            } else {
                let _ = writeln!(out, "if (v) {{\n{}}}", indented(&body));
            }
            return;
        }
        let fill = |first: &str| {
            let init = format!("(struct v{object}){{ {first} }}");
            if self.xdp() {
                format!(
                    "struct v{object} fresh = {init};\nbpf_map_update_elem(&m{object}, &k{i}, &fresh, BPF_NOEXIST);\n"
                )
            } else {
                format!("map_put(&m{object}, &k{i}, &{init});\n")
            }
        };
        match miss {
            Miss::Skip => {
                let _ = writeln!(out, "if (v) {{\n{}}}", indented(&body));
            }
            Miss::Insert => {
                let first = fill(".t = now, .a = 1");
                let _ = writeln!(
                    out,
                    "if (!v) {{\n{}}} else {{\n{}}}",
                    indented(&first),
                    indented(&body)
                );
            }
            Miss::Make => {
                let _ = writeln!(
                    out,
                    "if (!v) {{\n{}\tv = {};\n}}\nif (v) {{\n{}}}",
                    indented(&fill(".t = 0")),
                    get(false),
                    indented(&body)
                );
            }
        }
    }

    /// The key of block `i`, in a variable `kI`; for objects reached by a number one below their capacity.
    fn key(&self, out: &mut String, i: usize, key: Key, object: Option<usize>) {
        let object = object.and_then(|o| self.program.objects.get(o));
        let shape = object.map_or(self.shape(key), |o| o.shape);
        let own = format!("&k{i}");
        let expression = self.expression(key).replace("&K", &own);
        match object.filter(|o| o.kind.indexed()) {
            Some(o) => {
                let mask = o.capacity - 1;
                let _ = writeln!(out, "__u32 k{i} = ({expression}) & {mask};");
            }
            None => {
                let _ = writeln!(out, "{} k{i} = {expression};", c_type(shape));
            }
        }
    }

    /// The C type of a key where no object says otherwise.
    fn shape(&self, key: Key) -> Shape {
        let whole = matches!(key, Key::Tuple | Key::Reversed | Key::Conversation);
        if whole && self.program.parse.family == Family::Flow {
            return Shape::Flow;
        }
        shape_of(key)
    }

    fn expression(&self, key: Key) -> String {
        let flow = self.program.parse.family == Family::Flow;
        let text = match key {
            Key::Constant(n) => return n.to_string(),
            Key::Src => "src",
            Key::Dst => "dst",
            Key::Dport => "dport",
            Key::Prefix(bytes) => {
                return format!(
                    "src & {:#x}",
                    0xffff_ffff_u32 >> (8 * (4 - u32::from(bytes)))
                );
            }
            Key::Low => "src >> 24",
            Key::Proto => "proto",
            Key::Xor => "src ^ dst",
            Key::Sum => "src + dst",
            Key::Hash => "src * 0x9e3779b1u >> 20",
            Key::Side => "in ? dst : src",
            Key::ByProto => "proto == 17 ? src : dst",
            Key::Len => "(__u32)len",
            Key::Ttl => "ttl",
            Key::Time => "(__u32)(now >> 20)",
            Key::Of(block) => return format!("(__u32)r{block}"),
            Key::Pair => "{ src, dst }",
            Key::Ordered => "{ src < dst ? src : dst, src < dst ? dst : src }",
            Key::Peers => "{ in ? dst : src, in ? src : dst }",
            Key::Tuple if flow => "f",
            Key::Tuple => "{ src, dst, sport, dport, proto }",
            Key::Reversed if flow => "f; flow_reverse(&K)",
            Key::Reversed => "{ dst, src, dport, sport, proto }",
            Key::Conversation if flow => "f; if (in) flow_reverse(&K)",
            Key::Conversation => {
                "{ in ? dst : src, in ? src : dst, in ? dport : sport, in ? sport : dport, proto }"
            }
            Key::Source => "{ src, sport, proto }",
            Key::Destination => "{ dst, dport, proto }",
            Key::MacSrc => "{ { data[6], data[7], data[8], data[9], data[10], data[11] } }",
            Key::MacDst => "{ { data[0], data[1], data[2], data[3], data[4], data[5] } }",
            Key::SixSrc => "{ src6[0], src6[1], src6[2], src6[3] }",
            Key::SixDst => "{ dst6[0], dst6[1], dst6[2], dst6[3] }",
            Key::SixNet => "{ src6[0], src6[1], 0, 0 }",
        };
        text.to_owned()
    }

    fn leak(&self, out: &mut String, i: usize, leak: Leak) {
        let drop = if self.xdp() {
            "verdict = XDP_DROP"
        } else {
            "drop = 1"
        };
        let text = match leak {
            Leak::None | Leak::Tail | Leak::Head => return,
            Leak::Odd => format!("if (r{i} & 1)\n\t{drop};"),
            Leak::Above(limit) => format!("if (r{i} > {limit})\n\t{drop};"),
            Leak::Port if self.xdp() => {
                format!(
                    "if (verdict != XDP_DROP)\n\tverdict = XDP_REDIRECT;\nout = (r{i} & 1) + 1;"
                )
            }
            Leak::Verdict if self.xdp() => return,
            Leak::Port | Leak::Verdict => format!("out = r{i} & 1;"),
            Leak::Byte => format!("data[{}] = r{i};", i % 6),
            Leak::Place => format!("data[(r{i} & 0xff) % {PLACES}] = 0xff;"),
            Leak::Record => format!(
                "__u64 record[2] = {{ src, r{i} }};\nbpf_ringbuf_output(&records, record, sizeof(record), 0);"
            ),
            Leak::RecordLength => format!(
                "__u64 record[2] = {{ src, dst }};\nbpf_ringbuf_output(&records, record, 8 + (r{i} & 7), 0);"
            ),
            Leak::RecordWhether => format!(
                "__u64 record[2] = {{ src, dst }};\nif (r{i} & 1)\n\
                 \tbpf_ringbuf_output(&records, record, sizeof(record), 0);"
            ),
            Leak::PerfLength => format!(
                "__u64 record[2] = {{ src, dst }};\n\
                 bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, record, 8 + (r{i} & 7));"
            ),
            Leak::TailCall => format!("bpf_tail_call(ctx, &programs, r{i} & 1);"),
            Leak::Csum => {
                format!("__be32 word = r{i};\nif (bpf_csum_diff(0, 0, &word, 4, 0) & 1)\n\t{drop};")
            }
            Leak::Text => format!(
                "char text[24] = {{}};\n__u64 number = r{i};\n\
                 if (bpf_snprintf(text, sizeof(text), \"%llu\", &number, 8) > 2)\n\t{drop};"
            ),
            Leak::Number => format!(
                "char text[4] = {{ '0' + (r{i} & 7), '1', 0, 0 }};\nlong number = 0;\n\
                 bpf_strtol(text, 3, 10, &number);\nif (number > 31)\n\t{drop};"
            ),
            Leak::Compare => format!(
                "char text[4] = {{ 'a' + (r{i} & 3), 0, 0, 0 }};\nif (!bpf_strncmp(text, 4, \"b\"))\n\t{drop};"
            ),
            Leak::Global => format!("seen = r{i};"),
        };
        let _ = writeln!(out, "{text}");
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|l| format!("\t{l}\n")).collect()
}

fn act(action: Action, i: usize, amount: &str, value: Value) -> String {
    let half = unsigned(value.a.max(2) / 2);
    match action {
        Action::Add => format!("v->a += {amount};\n"),
        Action::AddTwo => format!("v->a += {amount};\nv->b += len;\n"),
        Action::AtomicAdd => format!("__sync_fetch_and_add(&v->t, {amount});\n"),
        Action::Fetch => format!("r{i} = __sync_fetch_and_add(&v->t, {amount});\n"),
        Action::Count => format!("r{i} = v->a;\nv->a = r{i} + 1;\n"),
        Action::Window => format!(
            "if (now - v->t > {WINDOW}) {{\n\tv->t = now;\n\tv->a = 0;\n}}\nv->a++;\nr{i} = v->a;\n"
        ),
        Action::Bucket => format!(
            "__u64 more = (now - v->t) >> {TOKEN};\nif (more) {{\n\tv->t = now;\n\tv->a = v->a + more > 9 ? 9 : v->a + more;\n}}\n\
             r{i} = !v->a;\nif (v->a)\n\tv->a--;\n"
        ),
        Action::Max => format!("if ({amount} > v->a)\n\tv->a = {amount};\nr{i} = v->a;\n"),
        Action::Xor => format!("v->a ^= {amount};\nr{i} = v->a;\n"),
        Action::Or => format!("v->a |= {amount};\nr{i} = v->a;\n"),
        Action::Last => format!("r{i} = v->a;\nv->a = {amount};\n"),
        Action::Mix => format!("v->a = v->a * 3 + {amount};\nr{i} = v->a;\n"),
        Action::AddOwn => "v->a++;\nv->b += v->a;\n".to_owned(),
        Action::AtomicOwn => "__sync_fetch_and_add(&v->t, v->a);\nv->a++;\n".to_owned(),
        Action::Overlap => {
            format!("v->a += {amount};\n*({half} *)((__u8 *)&v->a + sizeof({half})) += {amount};\n")
        }
        Action::Saturate => format!("if (v->a < 20)\n\tv->a++;\nr{i} = v->a;\n"),
        Action::Read => format!("r{i} = v->a;\n"),
        Action::Exchange => {
            format!("r{i} = __sync_lock_test_and_set(&v->t, (__u64)({amount}));\n")
        }
        Action::Subtract => format!("v->a -= {amount};\n"),
        Action::Scratch => format!("v->a = {amount};\nv->b = 3;\nr{i} = v->a + v->b;\n"),
        Action::Put => String::new(),
    }
}

/// A flow of port 0 leases a number; a packet of port 1 carries one.
fn leased(i: usize, held: Held, mismatch: Mismatch) -> String {
    let miss = match mismatch {
        Mismatch::Cut => "return PASS;",
        _ => "return DROP_BECAUSE(no_flow);",
    };
    let differs = match held {
        Held::Address => "l->remote != src",
        Held::Port => "l->rport != sport",
        Held::Both => "l->remote != src || l->rport != sport",
    };
    let otherwise = match mismatch {
        Mismatch::AsMiss => miss,
        Mismatch::Reason => "return DROP_BECAUSE(stranger);",
        Mismatch::Forward => "return FORWARD(0);",
        Mismatch::Counted => "{\n\t\tl->misses++;\n\t\treturn DROP_BECAUSE(no_flow);\n\t}",
        Mismatch::Cut => "{\n\t\tadjust_tail(p, -2);\n\t\treturn PASS;\n\t}",
    };
    format!(
        "if (in == 0) {{\n\tstruct tuple5 t = {{ src, dst, sport, dport, proto }};\n\tif (!map_get(&known, &t)) {{\n\
         \t\t__s64 n = allocator_lease(&leases, &(struct lease){{ src, dst, sport, dport }});\n\
         \t\tif (n >= 0)\n\t\t\tmap_put(&known, &t, &(struct number){{ n }});\n\t}}\n}} else {{\n\
         \tstruct lease *l = allocator_get(&leases, ntohs(dport));\n\tif (!l)\n\t\t{miss}\n\
         \tif ({differs})\n\t\t{otherwise}\n\tr{i} = 1;\n}}\n"
    )
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
        | Source::Delete { object, .. } => [Some(*object), None],
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

/// Where the headers of IPv4 are looked at; `other` is what happens to all other packets.
fn v4(parse: &Parse, data: &str, end: &str, other: &str) -> String {
    let handlers = data.starts_with('p');
    let mut out = format!("\t__u8 *data = (void *)(long){data}, *end = (void *)(long){end};\n");
    let swap = if handlers { "htons" } else { "bpf_htons" };
    let mut refuse = |condition: String| {
        let _ = writeln!(out, "\tif ({condition})\n\t\t{other}");
    };
    refuse("data + 34 > end".to_owned());
    refuse(format!("*(__u16 *)(data + 12) != {swap}(0x0800)"));
    out.push_str("\tstruct iphdr *ip = (void *)(data + 14);\n");
    let mut refuse = |condition: &str| {
        let _ = writeln!(out, "\tif ({condition})\n\t\t{other}");
    };
    if parse.version {
        refuse("ip->version != 4");
    }
    if parse.length == HeaderLength::Fixed {
        refuse("ip->ihl != 5");
    }
    if parse.fragments {
        refuse(if handlers {
            "ip->frag_off & htons(0x3fff)"
        } else {
            "ip->frag_off & bpf_htons(0x3fff)"
        });
    }
    match parse.protocol {
        Protocol::Udp => refuse("ip->protocol != 17"),
        Protocol::Both => refuse("ip->protocol != 17 && ip->protocol != 6"),
        Protocol::Ignored | Protocol::NoPorts => {}
    }
    if parse.protocol != Protocol::NoPorts {
        let at = match parse.length {
            HeaderLength::Walked => "14 + ip->ihl * 4",
            _ => "34",
        };
        let _ = writeln!(out, "\t__u16 *l4 = (void *)(data + {at});");
        let _ = writeln!(out, "\tif ((__u8 *)(l4 + 2) > end)\n\t\t{other}");
    }
    out
}

/// The same for IPv6, and for Ethernet alone.
fn six(parse: &Parse, data: &str, end: &str, other: &str) -> String {
    let mut out = format!("\t__u8 *data = (void *)(long){data}, *end = (void *)(long){end};\n");
    let mut refuse = |condition: &str| {
        let _ = writeln!(out, "\tif ({condition})\n\t\t{other}");
    };
    if parse.family == Family::Ethernet {
        refuse("data + 34 > end");
        out.push_str("\t__u32 src = data[11], dst = data[5], proto = data[12], ttl = data[13];\n");
        return out;
    }
    refuse("data + 58 > end");
    refuse("data[12] != 0x86 || data[13] != 0xdd");
    if parse.version {
        refuse("data[14] >> 4 != 6");
    }
    match parse.protocol {
        Protocol::Udp => refuse("data[20] != 17"),
        Protocol::Both => refuse("data[20] != 17 && data[20] != 6"),
        Protocol::Ignored | Protocol::NoPorts => {}
    }
    out.push_str("\t__u32 *src6 = (void *)(data + 22), *dst6 = (void *)(data + 38);\n");
    out.push_str("\t__u32 src = src6[3], dst = dst6[3], proto = data[20], ttl = data[21];\n");
    out.push_str("\t__u16 *l4 = (void *)(data + 54);\n");
    out
}

const V4_FIELDS: &str =
    "\t__u32 src = ip->saddr, dst = ip->daddr, proto = ip->protocol, ttl = ip->ttl;\n";

const XDP: &str = "\
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

";

const HANDLERS: &str = "\
#include <linux/ip.h>
#include <millrace/nf.h>

PORTS(LAN, WAN);

";

const GATHER_BEGIN: &str = "\
struct fields { __u32 src, dst; __u16 sport, dport; __u8 proto, ttl; };

static __always_inline int gather(struct xdp_md *ctx, struct fields *f)
{
";

/// The allocator and what finds its entries. With `few` numbers, less than the NIC's table has indexes, they cannot come
/// home to all of these (R6), so that what packets are held against decides (R5).
fn declared(few: bool) -> String {
    match few {
        true => LEASED.replace("capacity = 1024", "capacity = 64") + CUT,
        false => LEASED.to_owned(),
    }
}

const CUT: &str = "static long (*adjust_tail)(struct packet *p, int delta) = (void *)65;\n\n";

const LEASED: &str = "\
struct tuple5 { __u32 src, dst; __u16 sport, dport; __u32 proto; };
struct number { __u64 n; };
struct lease { __u32 host, remote; __u16 port, rport; __u32 misses; };
MAP(known, struct tuple5, struct number, .capacity = 4096);
ALLOCATOR(leases, struct lease, .capacity = 1024, .first = 1000);

";

const TAIL: &str = "\
SEC(\"xdp\")
int second(struct xdp_md *ctx)
{
	return XDP_DROP;
}

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__array(values, int (void *));
} programs SEC(\".maps\") = { .values = { [1] = (void *)&second } };

";

/// Kinds of state that a program has, each once, for counts.
#[must_use]
pub fn kinds(program: &Program) -> BTreeSet<String> {
    let objects = program.objects.iter().map(|o| format!("{:?}", o.kind));
    objects.collect()
}
