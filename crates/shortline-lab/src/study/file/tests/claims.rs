//! Figures, clauses and checks of a study's file, and the errors of wrong ones.

use super::{GOOD, assert_refused, error_of, parsed};
use crate::study::claim::{Check, LinkCheck, Requests};
use crate::study::verdict::Want;

#[test]
fn a_check_says_what_it_wants_of_whom() {
    let text = format!(
        "{GOOD}environment = \"wans\"\n[[figure]]\nclaim = \"c\"\n[[figure.check]]\n\
         measure = \"finished-gain\"\nof = \"srpt\"\nover = \"nginx\"\nat = \"mi\"\n\
         group = \"wan1\"\nover-group = \"wan6\"\nacross = \"average\"\npercent-shorter = 20\nwithin = 0.5\n"
    );
    let check = aim_of(&text);
    assert_eq!(check.want, Want::Between(1.0 / 0.9, 1.0 / 0.7));
    assert_eq!(
        check.requests,
        Requests::GroupOver("wan1".into(), "wan6".into())
    );
    assert!(!check.is_papers());
}

fn aim_of(text: &str) -> LinkCheck {
    match parsed(text).unwrap().figures.remove(0).aims.remove(0) {
        Check::Link(check) => check,
        other => panic!("{other:?}"),
    }
}

/// A study with one figure of these lines.
fn with_figure(lines: &str) -> String {
    format!("{GOOD}[[figure]]\n{lines}\n")
}

const CLAUSE: &str = "name = \"000 Fig. 8\"\n[[figure.clause]]\nsays = \"8 times\"\n";
const CHECK: &str = "[[figure.clause.check]]\nmeasure = \"mean-gain\"\npaper = \"8\"\n";

#[test]
fn the_clauses_of_a_figure_are_its_claim_and_each_has_a_check() {
    let good = with_figure(&format!(
        "{CLAUSE}{CHECK}between = [4, 8]\n{}{CHECK}near = 1\nwithin = 0.1\n",
        "[[figure.clause]]\nsays = \"no loss\"\n"
    ));
    let figure = parsed(&good).unwrap().figures.remove(0);
    assert_eq!(figure.claim, "8 times; no loss");
    let wants: Vec<Want> = figure
        .clauses
        .iter()
        .map(|clause| match &clause.checks[..] {
            [Check::Link(check)] => check.want,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(wants, [Want::Between(4.0, 8.0), Want::Near(1.0, 0.1)]);
    assert_refused(
        &with_figure(CLAUSE),
        "7: figure.clause: `8 times` of figure `000 Fig. 8` has no check",
        "want a check of each clause",
    );
    assert_refused(
        &good.replace("paper = \"8\"\nbetween", "between"),
        "9: figure.clause.check: an aim of our own",
        "want the paper's figure as `paper`",
    );
    assert_refused(
        &with_figure(
            "claim = \"8 times\"\n[[figure.check]]\nmeasure = \"mean-gain\"\nat-least = 8\npaper = \"8\"",
        ),
        "7: figure.check: a paper's claim without its words",
        "[[figure.clause]]",
    );
    assert_refused(
        &good.replace("name = ", "claim = \"c\"\nname = "),
        "6: figure.claim: beside clauses",
        "want either",
    );
    assert_refused(
        &with_figure("name = \"n\""),
        "5: figure: `claim` is missing",
        "want what it shows",
    );
}

#[test]
fn what_is_wanted_is_one_range_with_its_keys() {
    let study = |want: &str| {
        let check = "claim = \"c\"\n[[figure.check]]\nmeasure = \"mean-gain\"\n";
        with_figure(&format!("{check}{want}"))
    };
    assert_eq!(
        aim_of(&study("sizes = [0, 50]\nat-least = 2")).requests,
        Requests::Percentiles(0.0, 50.0)
    );
    for (want, begin, right) in [
        (
            "",
            "7: figure.check: what it should be",
            "want one of at-least",
        ),
        (
            "at-least = 1\nat-most = 2",
            "7: figure.check: ",
            "want one of at-least",
        ),
        (
            "between = [8, 4]",
            "9: figure.check.between: [8, 4]",
            "the lower one first",
        ),
        (
            "near = 1",
            "7: figure.check: `within` is missing",
            "as a share",
        ),
        (
            "near = 1\nwithin = 10",
            "10: figure.check.within: 10",
            "below 1",
        ),
        (
            "at-least = 1\nwithin = 0.1",
            "10: figure.check.within: ",
            "want near",
        ),
        (
            "at-least = nan",
            "9: figure.check.at-least: ",
            "want a number",
        ),
        (
            "at-least = 1\nsizes = [0, 101]",
            "10: figure.check.sizes: ",
            "100 at most",
        ),
        (
            "at-least = 1\nsecond = 4",
            "10: figure.check.second: ",
            "mean-at",
        ),
        (
            "at-least = 1\nover-at = \"w9\"",
            "10: figure.check.over-at: ",
            "want the begin of one of mine",
        ),
        (
            "at-least = 1\nsizes = [0, 1]\nbytes = [1, 2]",
            "10: figure.check.sizes: ",
            "want one of them",
        ),
    ] {
        assert_refused(&study(want), begin, right);
    }
    let other = study("sizes = [0, 50]\nat-least = 2").replace("mean-gain", "finished-gain");
    assert_refused(
        &other,
        "8: figure.check.measure: not kept for these requests",
        "mean-gain",
    );
    let then = study("at-least = 2").replace("mean-gain", "mean-at");
    assert_refused(
        &then,
        "8: figure.check.measure: lacks a number",
        "want second = N",
    );
}

#[test]
fn a_check_is_of_what_is_run() {
    let check = |keys: &str| format!("{GOOD}[[figure]]\nclaim = \"c\"\n[[figure.check]]\n{keys}\n");
    let gain = "measure = \"mean-gain\"\nat-least = 1";
    parsed(&check(gain)).unwrap();
    for (keys, begin, right) in [
        (
            "measure = \"speed\"\nat-least = 1",
            "8: figure.check.measure: ",
            "`mean-gain`",
        ),
        (
            "at-least = 1",
            "7: figure.check: ",
            "missing field `measure`",
        ),
        (
            "measure = \"mean-gain\"",
            "7: figure.check: ",
            "want one of at-least",
        ),
    ] {
        assert_refused(&check(keys), begin, right);
    }
    for (key, begin, right) in [
        (
            "of = \"fair\"",
            "figure.check.of: ",
            "want one of srpt, nginx",
        ),
        (
            "at = \"w2\"",
            "figure.check.at: ",
            "want the begin of one of mine",
        ),
        (
            "group = \"wan1\"",
            "figure.check.group: ",
            "want one of local",
        ),
        (
            "over-group = \"local\"",
            "figure.check.over-group: ",
            "want both",
        ),
        ("at-most = 2", "figure.check: ", "want one of at-least"),
        (
            "database = \"postgres\"",
            "figure.check.database: ",
            "want it in a bookstore's",
        ),
    ] {
        let error = error_of(&check(&format!("{gain}\n{key}")));
        assert!(error.contains(begin) && error.contains(right), "{error}");
    }
    let percent = check("measure = \"mean-gain\"\npercent-shorter = 100\nwithin = 0.1");
    assert_refused(
        &percent,
        "9: figure.check.percent-shorter: ",
        "want below 100",
    );
}
