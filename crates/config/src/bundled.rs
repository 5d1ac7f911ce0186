//! Files that are part of the program.

/// A file that is part of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundled {
    /// Its name.
    pub name: &'static str,
    /// Purpose, one line.
    pub about: &'static str,
    /// Its content.
    pub text: &'static str,
}

/// A list of [`Bundled`]: the directory relative to the source file with the list, then the name of each file
/// without `.toml`, and its purpose.
#[macro_export]
macro_rules! bundled {
    ($folder:literal; $($name:literal: $about:literal,)+) => {
        &[$($crate::Bundled {
            name: $name,
            about: $about,
            text: ::core::include_str!(::core::concat!($folder, "/", $name, ".toml")),
        }),+]
    };
}
