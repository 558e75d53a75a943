//! What the program prints without doing anything: the help of each command, and refusals of one line. The pages
//! below `tests/pages` are transcripts: what is typed behind `$`, what comes, and `? CODE` where it is not 0.
//!
//! `TRYCMD=overwrite cargo test -p shortline --test pages` writes them anew; what `git diff` then shows is what a user
//! will notice.

#[test]
fn pages_are_as_they_were() {
    trycmd::TestCases::new()
        .env("COLUMNS", "100")
        .case("tests/pages/*.trycmd");
}
