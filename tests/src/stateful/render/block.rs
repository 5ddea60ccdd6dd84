//! The blocks of a program: what each asks of its objects, and what it lets others see of the answer.

use std::fmt::Write as _;

use super::{PLACES, Renderer, TOKEN, WINDOW, c_type, shape_of, unsigned};
use crate::stateful::case::{
    Action, Amount, Block, Family, Held, Key, Kind, Leak, Mismatch, Miss, Over, Shape, Source,
    Value, When,
};

impl Renderer<'_> {
    pub(super) fn condition(&self, when: When) -> Option<String> {
        Some(match when {
            When::Always => return None,
            When::Port(port) => format!("in == {port}"),
            When::Udp => "proto == 17".to_owned(),
            When::To(port) if self.xdp() => format!("dport == bpf_htons({port})"),
            When::To(port) => format!("dport == htons({port})"),
            When::Odd(block) => format!("r{block} & 1"),
        })
    }

    pub(super) fn source_of(&self, out: &mut String, i: usize, block: &Block) {
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
            Source::Loop { object, key, over } => self.repeated(out, i, (*object, *key), *over),
            Source::Sketch(key) => {
                self.key(out, i, *key, None);
                let _ = writeln!(out, "r{i} = sketch_add(&s{i}, &k{i}, 1);");
            }
        }
    }

    /// A loop around a table of words, which clang leaves as one.
    fn repeated(&self, out: &mut String, i: usize, (object, key): (usize, Key), over: Over) {
        let (get, put, once) = self.calls();
        let expression = self.expression(key);
        let rolled = "#pragma clang loop unroll(disable)\n";
        let missing = format!(
            "struct v{object} fresh = {{ .a = 1 }};\n{put}(&m{object}, &k{i}, &fresh{once});\n"
        );
        let head = match over {
            Over::Bytes => format!(
                "__u32 k{i} = {expression};\n{rolled}for (int n = 0; n < 8; n++)\n\tk{i} = k{i} * 31 + data[n];\nk{i} &= 63;\n"
            ),
            _ => format!("__u32 k{i} = {expression};\n"),
        };
        let found = format!("struct v{object} *v = {get}(&m{object}, &k{i});\n");
        let body = match over {
            Over::Bytes => "r = v->a;\nv->a = r + 1;\n".to_owned(),
            Over::Keys => "v->a += n + 1;\nr += v->a;\n".to_owned(),
            Over::Rounds => format!(
                "__u32 rounds = v->a & 7;\n{rolled}for (__u32 n = 0; n < rounds && n < 8; n++)\n\tv->b = v->b * 3 + n;\nv->a++;\nr = v->b;\n"
            ),
            Over::Late => format!(
                "{rolled}for (int n = 0; n < 6; n++)\n\tv->b = v->b * 5 + data[n];\nv->a++;\nr = v->b;\n"
            ),
        }
        .replace("r += ", &format!("r{i} += "))
        .replace("r = v", &format!("r{i} = v"))
        .replace("= r +", &format!("= r{i} +"));
        let inside = format!(
            "{found}if (!v) {{\n{}}} else {{\n{}}}\n",
            indented(&missing),
            indented(&body)
        );
        out.push_str(&head);
        if over == Over::Keys {
            let _ = write!(
                out,
                "{rolled}for (__u32 n = 0; n < 3; n++) {{\n{}\tk{i} = (k{i} >> 3) ^ n;\n}}\n",
                indented(&inside)
            );
        } else {
            out.push_str(&inside);
        }
    }

    /// How this dialect looks something up, and puts it there.
    fn calls(&self) -> (&'static str, &'static str, &'static str) {
        match self.xdp() {
            true => (
                "bpf_map_lookup_elem",
                "bpf_map_update_elem",
                ", BPF_NOEXIST",
            ),
            false => ("map_get", "map_put", ""),
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
        let (get, put, once) = self.calls();
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
    pub(super) fn shape(&self, key: Key) -> Shape {
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

    pub(super) fn leak(&self, out: &mut String, i: usize, leak: Leak) {
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
