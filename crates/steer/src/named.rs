//! Enumerations whose variants have names that people write.

/// Declares one, `Variant = "name"`: `ALL` has every variant in the order of their declaration, `name` says how one is written.
#[macro_export]
macro_rules! named {
    ($(#[$of:meta])* pub enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$of])*
        pub enum $type {
            $($(#[$doc])* $variant,)+
        }

        impl $type {
            /// Every one, in the order of their declaration.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// As people write and read it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}
