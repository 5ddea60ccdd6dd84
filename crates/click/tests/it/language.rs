//! Configurations and the flat graphs, or the errors, that they give.

use millrace_click::error::Error;
use millrace_click::language::{Graph, Limits, args, flatten, parse};

fn graph(text: &str) -> Result<Graph, Vec<Error>> {
    let limits = Limits::default();
    let mut library = |_: &str, name: &str| match name {
        "lib" => Ok(("lib".into(), "elementclass A { i :: Idle }".into())),
        _ => Err("no such file".into()),
    };
    parse(text, "t.click", &limits, &mut library).and_then(|file| flatten(&file, &limits))
}

fn flat(text: &str) -> String {
    match graph(text) {
        Ok(graph) => graph.to_string(),
        Err(errors) => {
            let all: Vec<_> = errors.iter().map(ToString::to_string).collect();
            panic!("{text}\n{}", all.join("\n"))
        }
    }
}

/// Connections alone, sorted, one a line.
fn links(text: &str) -> String {
    let graph = graph(text).unwrap();
    let name = |p: millrace_click::language::Port| &graph.elements[p.element].name;
    let mut all: Vec<_> = graph
        .links
        .iter()
        .map(|l| {
            format!(
                "{}.{}>{}.{}",
                name(l.from),
                l.from.port,
                name(l.to),
                l.to.port
            )
        })
        .collect();
    all.sort();
    all.join(" ")
}

fn wrong(text: &str) -> String {
    let errors = graph(text).unwrap_err();
    for error in &errors {
        assert!(!error.what.is_empty() && !error.help.is_empty(), "{text}");
    }
    let place = errors[0].place.as_ref().unwrap();
    format!("{}:{}: {}", place.line, place.column, errors[0].what)
}

#[test]
fn declarations_and_connections() {
    assert_eq!(
        flat("a :: Idle; b, c :: Null(x, y);\na -> b -> Discard; a[1] -> [0]c -> d :: Discard"),
        "a :: Idle;\nb :: Null(x, y);\nc :: Null(x, y);\nDiscard@4 :: Discard;\nd :: Discard;\n\
         a -> b\n    -> Discard@4;\na [1] -> c\n    -> d;\n"
    );
    // A statement ends where the next one begins.
    assert_eq!(links("i::Idle\nx::Null i->x x->i"), "i.0>x.0 x.0>i.0");
}

#[test]
fn many_ports() {
    let idle = "a, b, c, d :: Idle; ";
    let on = |text: &str| links(&format!("{idle}{text}"));
    assert_eq!(on("a => b, c, [0,1] a;"), "a.0>b.0 a.1>c.0 a.2>a.0 a.3>a.1");
    assert_eq!(
        on("a, a[1] -> b -> c, d"),
        "a.0>b.0 a.1>b.0 b.0>c.0 b.0>d.0"
    );
    assert_eq!(on("a [0-2] => b [1], c, [7] d;"), "a.0>b.0 a.1>c.0 a.2>d.7");
    assert_eq!(on("a [2,0] => [] b"), "a.0>b.1 a.2>b.0");
    assert_eq!(on("a [0,1] -> b"), "a.0>b.0 a.1>b.0");
    assert_eq!(
        wrong(&format!("{idle}\na [0,1] => [0,1,2] b;")),
        "2:12: connection mismatch: 2 outputs connected to 3 inputs"
    );
    assert_eq!(
        wrong(&format!("{idle}\na [] => [] b;")),
        "2:9: at most one expandable port allowed per connection"
    );
    assert!(wrong(&format!("{idle}\na [0,1] -> [0,1] b;")).contains("many-to-many"));
}

#[test]
fn groups_and_bare_arrows() {
    let idle = "a, b, c, d :: Idle; ";
    assert_eq!(
        links(&format!("{idle} a [0-2] => ( -> c ), ( -> b ), d;")),
        "a.0>c.0 a.1>b.0 a.2>d.0"
    );
    assert_eq!(
        links(&format!(
            "{idle} a => ( [0] -> b -> [0]; [1] -> [1] ) => c, d"
        )),
        "a.0>b.0 a.1>d.0 b.0>c.0"
    );
    assert_eq!(
        links(&format!(
            "{idle} a -> {{ -> }} -> b; a[1] -> {{ [0] -> [0] }} -> [1] b"
        )),
        "a.0>b.0 a.1>b.1"
    );
    assert_eq!(wrong("->Null;"), "1:1: syntax error near `->`");
}

#[test]
fn compound_elements() {
    assert_eq!(
        flat(
            "elementclass F { $a, K $b, __REST__ $r | input -> x :: Null($b, $a, $r) -> output }\n\
              Idle -> f :: F(1, 2, K 3, 4) -> Discard"
        ),
        "Idle@1 :: Idle;\nDiscard@3 :: Discard;\nf/x :: Null(3, 1, 2, 4);\nIdle@1 -> f/x\n    -> Discard@3;\n"
    );
    // The name of a parameter means the innermost one, but in a class from further out.
    assert!(flat(
        "elementclass F { $a | elementclass B { $b | M($a, $b) } elementclass Z { $a | B($a) } Z(2) } F(1);"
    ).contains("M(1, 2)"));
    assert_eq!(
        wrong("elementclass F { $a | Idle($a) }\nF(1, 2);"),
        "2:1: no match for `F` with 2 arguments"
    );
}

#[test]
fn overloads() {
    let text = "elementclass F { $a, $b | input -> P(1) -> output || $a, __REST__ $b | input -> P(2) -> output \
                || input -> P(5) -> output; input[1] -> P(6) -> [1]output }
        elementclass G { $a, $b | input -> P(4) -> output || ... }
        elementclass F { $a, $b | input -> P(7) -> output || ... }
        Idle -> F(A) -> f::F(A, TWO B) -> F(A, B, C) -> Discard; i::Idle => F() => d::Idle; i[1] -> [1]x::F[1]->d";
    let flat = flat(text);
    let configs: Vec<_> = flat.lines().filter(|l| l.contains(":: P(")).collect();
    assert!(
        configs[0].ends_with("P(2);") && configs[1].ends_with("f/P@1 :: P(7);"),
        "{flat}"
    );
    assert!(configs[2].ends_with("P(2);"), "{flat}");
    assert!(flat.contains("P(5)") && flat.contains("P(6)"), "{flat}");
}

#[test]
fn variables() {
    assert!(
        flat("define($a 1, $b $a); X($b $c ${a} ${c-d} '$a' \"$a\" \\$a)")
            .contains("X(1 $c 1 d '$a' \"1\" \\$a)")
    );
    // Those of a scope hold in all of it, whatever their order.
    assert!(flat("X($a); define($a 1)").contains("X(1)"));
    assert!(flat("define($a x y z, $n 1) X(${a[0]} ${a[$n]})").contains("X(x y)"));
    assert!(flat("define($a \"q\\\"\") X(\"<$a>\")").contains("X(\"<q\\\">\")"));
    assert!(wrong("define($a 1)\ndefine($a 2)").contains("multiply defined"));
}

#[test]
fn arguments() {
    assert_eq!(
        args::split("a, b ,, (c, d) \"e,\" 'f,' \\<2c> /* g, */,"),
        ["a", "b", "", "(c, d) \"e,\" 'f,' \\<2c>"]
    );
    assert_eq!(args::split(""), [""; 0]);
    assert_eq!(args::split(","), [""]);
    assert_eq!(
        args::unquote(r#"\<48 45>"\<4c4C>\x4f\n\101" '\n'"#),
        b"HELLO\nA \\n"
    );
    assert_eq!(args::words("a \"b c\"  d"), ["a", "\"b c\"", "d"]);
    assert_eq!(args::quote("a \"$b\\"), "\"a \\\"\\$b\\\\\"");
}

#[test]
fn comments_directives_requirements() {
    let text =
        "require(package x); // a -> b\n/* c -> \n d */ i :: Idle(// e)\n);\n# 10 \"o.click\"\n?";
    let error = &graph(text).unwrap_err()[0];
    assert_eq!(error.place.as_ref().unwrap().to_string(), "o.click:10");
    assert_eq!(
        flat("require(library lib); a::A; require(library lib)"),
        "a/i :: Idle;\n"
    );
    assert!(wrong("require(library z)").contains("no such file"));
    assert_eq!(flat("require(a, b)"), "require(a);\nrequire(b);\n");
}

#[test]
fn errors_at_every_production() {
    for (text, expected) in [
        ("a :: ;", "1:6: syntax error near `;`"),
        (
            "a :: Idle; a :: Idle;",
            "1:12: redeclaration of element `a`",
        ),
        ("A -> B;\nA :: Idle", "2:1: class `A` used as element name"),
        ("a :: Idle(\n\"", "1:6: its configuration does not end"),
        ("elementclass { }", "1:14: syntax error near `{`"),
        (
            "elementclass F { a :: Idle",
            "1:27: syntax error near `the file's end`",
        ),
        (
            "elementclass F { ... || x }",
            "1:22: syntax error near `||`",
        ),
        (
            "elementclass F { $a, $a | }",
            "1:22: parameter `$a` multiply defined",
        ),
        (
            "elementclass F { __REST__ $a, $b | }",
            "1:31: a parameter behind `__REST__`",
        ),
        ("Idle [x] -> Null", "1:7: `x` is no port number"),
        ("Idle [99999] -> Null", "1:7: `99999` is no port number"),
        ("Idle [3-1] -> Null", "1:7: ports 3-1 run backwards"),
        ("Idle [0 -> Null", "1:9: syntax error near `->`"),
        ("Idle -> -> Null", "1:9: syntax error near `->`"),
        (
            "Idle -> ( -> Null",
            "1:18: syntax error near `the file's end`",
        ),
        ("define(a 1)", "1:1: `a` is no variable"),
        ("define", "1:7: syntax error near `the file's end`"),
        ("} Idle", "1:1: syntax error near `}`"),
        ("Idle Ä", "1:6: syntax error near `Ä`"),
        (
            "elementclass F { require(library lib) }",
            "1:18: a library within a compound element",
        ),
    ] {
        assert_eq!(wrong(text), expected, "{text}");
    }
    // One error does not hide the next statement's.
    assert_eq!(graph("a :: ;\nb :: ;\nc :: Idle").unwrap_err().len(), 2);
}

#[test]
fn budgets() {
    assert!(wrong(&"{".repeat(100_000)).contains("within each other"));
    assert!(wrong(&format!("Idle -> {}", "(->".repeat(100_000))).contains("within each other"));
    // 2^40 elements, and 2^40 connections between two.
    let mut text = String::from("elementclass C0 { input -> Null -> output }\n");
    for n in 1..40 {
        text += &format!(
            "elementclass C{n} {{ input -> C{m}, C{m} -> output }}\n",
            m = n - 1
        );
    }
    assert!(wrong(&format!("{text} Idle -> C39 -> Discard")).contains("more than"));
    let mut text = String::from("elementclass C0 { input -> output; input[1] -> output }\n");
    for n in 1..40 {
        text += &format!(
            "elementclass C{n} {{ input => C{m} => [0,1]output }}\n",
            m = n - 1
        );
    }
    assert!(graph(&format!("{text} Idle -> C39 -> Discard")).is_ok());
    let mut text = String::from("define($a xxxxxxxxxx");
    for n in 0..9 {
        text += &format!(
            ", ${} {}",
            n,
            format!(
                "${} ",
                if n == 0 {
                    "a".into()
                } else {
                    (n - 1).to_string()
                }
            )
            .repeat(30)
        );
    }
    assert!(wrong(&format!("{text}); X($8)")).contains("bytes in all"));
    // A chain of definitions, deeper than any that a person writes.
    let mut text = String::from("elementclass C0 { Idle }\n");
    for n in 1..1000 {
        text += &format!("elementclass C{n} {{ C{m} }}\n", m = n - 1);
    }
    assert!(wrong(&format!("{text} C999;")).contains("within each other"));
    // A class is not known in its own body, nor a border's loop an element.
    assert_eq!(flat("elementclass F { F } F;"), "F@1/F@1 :: F;\n");
    assert_eq!(
        links("elementclass F { input -> output } f::F -> f; Idle -> [0]f"),
        ""
    );
}
