//! The name of an MPI library from MPI_Get_library_version, whose result may have dozens of lines.

const MAX_NAME: usize = 100;

/// Texts that follow the name: dates, packaging, configuration.
const NAME_TERMINATORS: [&str; 7] =
    [", package:", " Release date", " Release Date", " ABI:", " Device:", " configure", " MPI BUILD INFO"];

/// Name and version on one line: `MPICH 4.0.2`, `Open MPI v4.1.4`, `Intel(R) MPI Library 2021.9 for Linux* OS`.
#[must_use]
pub fn short_name(library: &str) -> String {
    let line = library.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = NAME_TERMINATORS.iter().filter_map(|noise| line.find(noise)).min().unwrap_or(line.len());
    let mut name = line[..end].replace(" Version: ", " ").replace(" Version : ", " ");
    // "MPICH 4.0.2 MPICH Release date: ...": the next line begins with the name again.
    let first = name.split(' ').next().unwrap_or_default().to_owned();
    if end < line.len() {
        if let Some(front) = name.strip_suffix(&first).filter(|front| !front.is_empty()) {
            name = front.to_owned();
        }
    }
    name.trim().chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_name_and_version() {
        for (library, name) in [
            (
                "MPICH Version: 4.0.2 MPICH Release date: Thu Apr 7 12:34:45 CDT 2022 MPICH ABI: 14:2:2 MPICH Device: ch4",
                "MPICH 4.0.2",
            ),
            ("MPICH Version:\t4.2.0\nMPICH Release date:\tFri Feb  9 12:29:21 CST 2024\n", "MPICH 4.2.0"),
            (
                "Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4, repo rev: v4.1.4, May 26, 2022",
                "Open MPI v4.1.4",
            ),
            ("Intel(R) MPI Library 2021.9 for Linux* OS\n", "Intel(R) MPI Library 2021.9 for Linux* OS"),
            (
                "MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)\nMPI BUILD INFO : Wed Nov 15 20:57 2023\n",
                "MPI VERSION : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)",
            ),
            ("MVAPICH2 Version      :\t2.3.7\nMVAPICH2 Release date :\tWed March 02 2022\n", "MVAPICH2 2.3.7"),
            ("MPICH", "MPICH"),
            ("", ""),
        ] {
            assert_eq!(short_name(library), name);
        }
        assert_eq!(short_name(&"größe".repeat(50)).chars().count(), MAX_NAME);
    }
}
