//! Files that come with the program.

/// A file that comes with the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bundled {
    /// Its name.
    pub name: &'static str,
    /// What it is for, one line.
    pub about: &'static str,
    /// The file.
    pub text: &'static str,
}

/// A list of [`Bundled`]: the folder of the files, as seen from the file in which the list stands, then the name of each
/// without `.toml` and what it is for.
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
