//! Maps declared as `struct bpf_map_def` in a section `maps`, the way of before BTF. Not read yet.

use crate::error::LoadError;

/// Whether maps are declared the old way in a section of this name.
pub(crate) fn is_section(name: &str) -> bool {
    name == "maps" || name.starts_with("maps/")
}

/// The refusal of such a declaration.
pub(crate) fn refusal(name: &str) -> LoadError {
    LoadError::new(
        "legacy-map",
        format!("`{name}` declares maps as `struct bpf_map_def`, which is not read"),
        "declare them in `SEC(\".maps\")` with `__uint(type, …)`, `__type(key, …)`, `__type(value, …)`",
    )
}
