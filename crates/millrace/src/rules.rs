//! Rules that a program brings for its classifiers.

use std::sync::Arc;

use millrace_classify::{Budget, Classifier, Rules};
use millrace_dataplane::module::Entry;
use millrace_object::program::Program;

use crate::Error;

/// Entries for all of them. The tables are made once, and all workers walk the same.
///
/// # Errors
/// They are no rules, or of another key or more classes than their object has.
pub(crate) fn given(program: &Program) -> Result<Vec<Entry>, Error> {
    let mut all = Vec::new();
    for (object, declared) in program.objects.iter().enumerate() {
        let Some(bytes) = &declared.rules else {
            continue;
        };
        let wrong = |what: String| {
            Error::wrong(format!("the rules given for {}: {what}", declared.name))
                .help("make the program again")
        };
        let rules = Rules::from_bytes(bytes).map_err(|e| wrong(e.to_string()))?;
        if rules.key().bytes() != declared.key_bytes || rules.classes() > declared.rows {
            return Err(wrong("they are of another key, or of more classes".into()));
        }
        all.push(Entry {
            object,
            rules: Some(Arc::new(Classifier::build(rules, &Budget::default()))),
            ..Entry::default()
        });
    }
    Ok(all)
}
