//! How to fix what clang and the loader find in a source, in the words of who writes network functions, and the line
//! where a declaration stands that the loader names.

use std::path::Path;

use millrace_object::LoadError;

/// What clang says, all of these parts of it in its first error, and how to fix that; the first that fits.
const CLANG: &[(&[&str], &str)] = &[
    (
        &["nf.h' file not found"],
        "the header is called `#include <millrace/nf.h>`",
    ),
    (
        &["type specifier missing"],
        "begin with `#include <millrace/nf.h>`",
    ),
    (
        &["invalid parameter name: 'struct'"],
        "ON_PACKET takes the packet's name alone: `ON_PACKET(p)`",
    ),
    (
        &["redefinition of 'millrace_on_packet'"],
        "a function has exactly one ON_PACKET: join the two, or make two functions and a chain of them",
    ),
    (
        &["redefinition of 'millrace_port'"],
        "name all ports in one PORTS",
    ),
    (
        &["redefinition of"],
        "give each object and function a name of its own",
    ),
    (
        &["called object type 'int' is not a function"],
        "PORTS takes one to eight names",
    ),
    (
        &["take the address with &"],
        "keys and values are passed by their address: `map_get(&flows, &flow)`",
    ),
    (
        &["incompatible pointer types", "->key"],
        "give the address of a key of the type that the object is declared with",
    ),
    (
        &["incompatible pointer types", "->value"],
        "give the address of a value of the type that the object is declared with",
    ),
    (
        &["does not refer to any field in type 'struct millrace_options'"],
        "docs/state-kinds.md lists the options of each kind, `.capacity` and `.expire_after` among them",
    ),
    (
        &["incomplete element type"],
        "declare the struct in full before the object",
    ),
    (
        &["no member named", "'struct packet'"],
        "a packet has `port`, `queue`, `time` and `ports`; packet_length(p) is its length, packet_at(p, offset, TYPE) its bytes",
    ),
    (
        &["with const-qualified type 'const volatile"],
        "a PARAM is set before start with `--set NAME=VALUE`; what changes is state: a static variable, or MAP, VECTOR …",
    ),
    (
        &["statement expression not allowed at file scope"],
        "a PARAM is a number or an address; a setting of several parts is several PARAMs",
    ),
    (
        &["'millrace_set_find'"],
        "a function with PACKET_SET names the set of a packet with SET_KEY(p, key)",
    ),
    (
        &["'millrace_set_first'"],
        "a function with PACKET_SET has an ON_FIRST_PACKET(p, key)",
    ),
    (
        &["'millrace_set_live'"],
        "a function with PACKET_SET has an ON_PACKET(p, state)",
    ),
    (
        &["'millrace_set_orphan'"],
        "a function with PACKET_SET has an ON_ORPHAN(p), for packets that are in no set",
    ),
    (
        &["a member of DISTRIBUTED is a __u64"],
        "declare its members as __u64",
    ),
    (&["built-in function '__mul"], NO_FRACTIONS),
    (&["built-in function '__float"], NO_FRACTIONS),
    (&["built-in function '__div"], NO_FRACTIONS),
    (&["built-in function '__fix"], NO_FRACTIONS),
    (
        &["built-in function 'mem"],
        "this is more than the stack has, 512 bytes, or of no constant size: keep large arrays in a VECTOR",
    ),
    (
        &["stack limit"],
        "the stack has 512 bytes: keep large arrays in a VECTOR",
    ),
    (&["'malloc'"], MEMORY),
    (&["'calloc'"], MEMORY),
    (&["'free'"], MEMORY),
    (&["'str"], BYTES),
    (&["'mem"], BYTES),
    (&["printk'"], PRINTS),
    (&["printf'"], PRINTS),
    (
        &["belongs to the host's C library"],
        "leave the header out; the line below the first says what there is instead",
    ),
    (
        &["should not return a value"],
        "handlers other than ON_PACKET return nothing: `return;`",
    ),
    (
        &["should return a value"],
        "return FORWARD(port), FLOOD, CONSUME, PASS, DROP or DROP_BECAUSE(reason)",
    ),
    (
        &["use of undeclared identifier"],
        "declare it above its use; state objects are declared outside of functions, with MAP, VECTOR, ALLOCATOR, SKETCH or LPM",
    ),
    (
        &["call to undeclared function"],
        "define the function in this file, or spell it as the headers of millrace/ do",
    ),
    (
        // The fields of `struct packet` are the only ones of this type.
        &[
            "incompatible integer to pointer conversion",
            "'const __u32'",
        ],
        "the packet's bytes come from `packet_at(p, OFFSET, TYPE)`, which is NULL where the packet is shorter",
    ),
    (
        &["no locks, atomics or threads"],
        "use a plain variable and plain `+=`",
    ),
];

const NO_FRACTIONS: &str = "BPF has no floating point: count in a smaller unit, multiply before dividing, or use multiply_high of intrinsics.h";
const MEMORY: &str = "memory is declared as state: MAP, VECTOR, ALLOCATOR, SKETCH, LPM";
const BYTES: &str = "compare and copy with `__builtin_memcmp` and `__builtin_memcpy` of a constant size, or assign structs";
const PRINTS: &str = "name drops with `DROP_BECAUSE(reason)` and count in a state object: both can be read while it runs";

const COMMA: &str = "a comma between the braces of a type ends the macro's argument: give each member a declaration of its own, `__u64 a; __u64 b;`, or declare the struct above and name it here";

/// How to fix the first error that clang shows.
#[must_use]
pub(crate) fn of_clang(diagnostics: &str) -> &'static str {
    let mut lines = diagnostics.lines().skip_while(|l| !l.contains("error: "));
    let first = lines.next();
    let mut behind = lines.take_while(|l| !l.contains("error: "));
    // A struct that misses a `;` is told the same, where no declaration of state stands around it.
    if first.is_some_and(|line| line.contains("expected ';' at end of declaration list"))
        && behind.any(|l| l.contains("expanded from macro 'MILLRACE_STATE'"))
    {
        return COMMA;
    }
    let fits = |(parts, _): &&(&[&str], &str)| {
        first.is_some_and(|line| parts.iter().all(|part| line.contains(part)))
    };
    CLANG
        .iter()
        .find(fits)
        .map_or("fix what clang shows above", |(_, help)| help)
}

/// The error in a source that was compiled, named as the author named it, with the first line that names what is wrong
/// if the loader does not know the line.
pub(crate) fn in_source(error: LoadError, source: &Path) -> LoadError {
    let line = error
        .line
        .is_none()
        .then(|| place(&error, source))
        .flatten();
    let name = source.display();
    let name = line.map_or_else(|| name.to_string(), |line| format!("{name}:{line}"));
    match &error.line {
        Some(_) => error,
        None => error.in_file(&name),
    }
}

/// The number of that line: of the symbol, else of a name between backticks in the text, else of a timer.
fn place(error: &LoadError, source: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(source).ok()?;
    let quoted = error.problem.split('`').skip(1).step_by(2);
    let timer = error.problem.starts_with("timer").then_some("EVERY");
    let names = error
        .symbol
        .as_deref()
        .into_iter()
        .chain(quoted)
        .chain(timer);
    names.filter(|n| !n.is_empty()).find_map(|name| {
        let of_name = |c: char| c.is_alphanumeric() || c == '_';
        let has = |line: &str| {
            line.match_indices(name).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                let after = line[at + name.len()..].chars().next();
                !before.is_some_and(of_name) && !after.is_some_and(of_name)
            })
        };
        text.lines().position(has).map(|index| index + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::of_clang;

    #[test]
    fn the_first_error_decides() {
        let said = "f.c:1:2: warning: 'malloc'\nf.c:3:1: error: redefinition of 'millrace_on_packet'\nf.c:4:1: error: 'malloc'\n";
        assert!(of_clang(said).contains("exactly one ON_PACKET"));
        assert_eq!(
            of_clang("f.c:1:1: error: expected ';'"),
            "fix what clang shows above"
        );
        assert_eq!(of_clang(""), "fix what clang shows above");
    }
}
