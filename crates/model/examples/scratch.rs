//! Scratch.
use millrace_model::{Limits, model};
use millrace_model::expr::*;
fn show(a: &Arena, e: ExprId, d: u32) -> String {
    if d == 0 { return "…".into(); }
    let s = |e: ExprId| show(a, e, d - 1);
    let w = a.width(e);
    match a.node(e) {
        Node::Const(c) => format!("{c}:{w}"),
        Node::Sym(x) => a.symbol(*x).name.clone(),
        Node::Byte { base: None, at } => format!("p{at}"),
        Node::Byte { base: Some(b), at } => format!("p[#{}+{at}]", b.0),
        Node::Concat(p) => format!("({})", p.iter().map(|x| s(*x)).collect::<Vec<_>>().join(" . ")),
        Node::Extract { of, low } => format!("{}[{}:{low}]", s(*of), low + w - 1),
        Node::SignExtend(x) => format!("sx({})", s(*x)),
        Node::Bin(op, x, y) => format!("({} {op:?} {})", s(*x), s(*y)),
        Node::Cmp(op, x, y) => format!("({} {op:?} {})", s(*x), s(*y)),
        Node::Ite(c, x, y) => format!("({} ? {} : {})", s(*c), s(*x), s(*y)),
    }
}
fn main() {
    let path = std::env::args().nth(1).unwrap();
    let program = millrace_object::load_file(std::path::Path::new(&path)).unwrap();
    let types = millrace_object::types::entry_types(&std::fs::read(&path).unwrap());
    let checked = millrace_check::check(&program, &millrace_check::Options::default()).unwrap();
    let t = std::time::Instant::now();
    let time = std::env::var("TIME").map_or(20, |t| t.parse().unwrap());
    let mut m = model(&program, &checked, &Limits { time: std::time::Duration::from_secs(time), ..Limits::default() });
    eprintln!("model {:?}", t.elapsed());
    if let Ok(raw) = std::env::var("RAW") {
        let d: u32 = std::env::var("DEPTH").map_or(12, |t| t.parse().unwrap());
        for e in &m.entries { for (i, p) in e.paths.iter().enumerate() {
            if raw != "all" && raw != i.to_string() { continue; }
            println!("path {i}");
            for g in &p.guard { println!("  G {}", show(&e.arena, *g, d)); }
            for a in &p.accesses { println!("  A {} {:?}", a.operation, a.line.as_ref().map(|l| l.line)); for k in &a.key { println!("    K {}", show(&e.arena, *k, d)); } }
        } }
    }
    let t = std::time::Instant::now();
    let r = millrace_model::report::report(&mut m, &program, &types);
    eprintln!("report {:?}", t.elapsed());
    print!("{}", millrace_model::report::text::text(&r, false));
}
