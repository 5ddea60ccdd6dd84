//! The C headers, carried in the binary so that it runs anywhere.

/// Path below the headers' folder, and text, of everything a module or an NF may include.
pub const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// The text of a header of the fast path, e.g. `state/hash.h`.
#[must_use]
pub fn text(path: &str) -> Option<&'static str> {
    let find = |(name, _): &&(&str, &str)| name.strip_prefix("fastpath/") == Some(path);
    FILES.iter().find(find).map(|(_, text)| *text)
}

/// Whether a kind's header has the function `KIND_<function>`.
///
/// Kinds without something have no function for it (fastpath/README.md), so the header is what tells, itself or by a line
/// `MACRO(KIND)` with which kinds that differ in little have the same functions (state/sequence.h, state/targets.h).
#[must_use]
pub fn defines(kind: &str, function: &str) -> bool {
    let own = format!("state/{kind}.h");
    let lines = text(&own).unwrap_or_default().lines();
    let mut macros = lines.filter_map(|line| line.strip_suffix(&format!("({kind})")));
    has(&own, &format!("{kind}_{function}(")) || macros.any(|name| makes(name, function))
}

/// Whether a macro of a kind defines `KIND_<function>`.
fn makes(name: &str, function: &str) -> bool {
    let (begin, call) = (
        format!("#define {name}(kind)"),
        format!("kind##_{function}("),
    );
    let defined = FILES.iter().filter_map(|(_, text)| text.split_once(&begin));
    // Its lines go on behind a backslash.
    defined
        .flat_map(|(_, body)| body.split("\n\n").next())
        .any(|body| {
            let mut heads = body.lines().filter(|line| line.contains(&call));
            heads.any(|line| {
                line.trim_start().starts_with("MR_") || line.trim_start().starts_with("static")
            })
        })
}

/// Whether a kind has the function `KIND_reader_<function>`, for readers of what workers share.
#[must_use]
pub fn reads(kind: &str, function: &str) -> bool {
    let call = format!("{kind}_reader_{function}(");
    has(&format!("sync/{kind}.h"), &call)
}

/// Whether readers have a function of a kind that changes a worker's own object and can be undone.
#[must_use]
pub fn keeps(kind: &str) -> bool {
    text(&format!("sync/{kind}.h")).is_some_and(|header| header.contains(&format!("{kind}_kept_")))
}

/// Whether objects of a kind can note which of their places change (`state/notes.h`).
#[must_use]
pub fn notes(kind: &str) -> bool {
    text(&format!("state/{kind}.h")).is_some_and(|t| t.contains(&format!("NOTES_CHANGES({kind})")))
}

fn has(path: &str, call: &str) -> bool {
    text(path).is_some_and(|header| {
        header.match_indices(call).any(|(at, _)| {
            // A definition begins its line with its storage; a use is indented.
            let line = header[..at].rfind('\n').map_or(0, |n| n + 1);
            let before = &header[line..at];
            (before.starts_with("MR_") || before.starts_with("static"))
                && before.ends_with([' ', '*'])
        })
    })
}

/// A hash over all headers; it goes into every cache key and names the folder they are written to.
#[must_use]
pub fn digest() -> &'static str {
    static DIGEST: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let parts: Vec<&[u8]> = FILES
            .iter()
            .flat_map(|(name, text)| [name.as_bytes(), text.as_bytes()])
            .collect();
        crate::cache::key(&parts)
    });
    &DIGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_what_its_header_or_its_macro_defines() {
        for (kind, function) in [
            ("hash", "set"),
            ("queue", "set"),
            ("stack", "map_pop_elem"),
            ("queue", "drop"),
            ("devmap", "set"),
            ("devmap", "map_lookup_elem"),
            ("cpumap", "redirect_map"),
        ] {
            assert!(defines(kind, function), "{kind}_{function}");
        }
        for (kind, function) in [
            ("queue", "remove"),
            ("stack", "token"),
            ("cpumap", "map_lookup_elem"),
            ("devmap", "age"),
            ("no_such", "set"),
        ] {
            assert!(!defines(kind, function), "{kind}_{function}");
        }
    }
}
