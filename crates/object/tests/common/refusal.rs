//! Compiles what must be refused, and looks at the refusal.

use millrace_object::{LoadError, load};

use super::{CLANGS, compile_text};

/// Compiles with every compiler here and gives the refusal, which must be of that rule.
pub fn refused(prelude: &str, text: &str, rule: &str) -> Vec<LoadError> {
    let text = format!("{prelude}{text}");
    let mut errors = Vec::new();
    for clang in CLANGS {
        let Some(bytes) = compile_text(clang, &text, &["-Wno-all"]) else {
            continue;
        };
        let error = match load(&bytes, "program") {
            Ok(program) => panic!("{clang}: not refused:\n{program}"),
            Err(error) => error,
        };
        assert_eq!(error.rule, rule, "{clang}: {error}");
        assert!(!error.remedy.is_empty(), "{clang}: {error}");
        errors.push(error);
    }
    errors
}

/// That every error says all of these.
pub fn say(errors: &[LoadError], words: &[&str]) {
    for error in errors {
        for word in words {
            assert!(
                error.to_string().contains(word),
                "`{word}` is missing: {error}"
            );
        }
    }
}
