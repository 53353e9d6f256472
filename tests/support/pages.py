"""Results as pages, as the commands write them."""

from zonal.report.advice import advice_blocks
from zonal.report.audit import audit_blocks
from zonal.report.clustering import clustering_blocks
from zonal.report.explanation import explanation_blocks
from zonal.report.health import health_blocks
from zonal.report.ledger import ledger_blocks
from zonal.report.many_audits import overview_blocks
from zonal.report.page.blocks import blocks_page


def health_page(health):
    return blocks_page(health_blocks(health))


def explanation_page(explanation):
    return blocks_page(explanation_blocks(explanation))


def advice_page(advice, given=None):
    return blocks_page(advice_blocks(advice, given))


def clustering_page(done):
    return blocks_page(clustering_blocks(done))


def audit_page(audit, audits=(), runs=(), **options):
    return blocks_page(audit_blocks(audit, audits, runs, **options))


def overview_page(overview):
    return blocks_page(overview_blocks(overview))


def trend_page(trend):
    return blocks_page(ledger_blocks(trend))
