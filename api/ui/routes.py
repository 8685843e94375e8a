"""The table of pages. A new page is a row here, a function, and a template."""

from __future__ import annotations

from typing import Final

from annals.api.ui.access.grants_page import grants_page, revoke_grant_page
from annals.api.ui.access.keys_page import keys_page, revoke_key_page, rotate_page
from annals.api.ui.compare.compare_page import compare_page
from annals.api.ui.edit.delete_page import delete_page
from annals.api.ui.edit.edit_pages import edit_page, new_page
from annals.api.ui.edit.restore_page import restore_page
from annals.api.ui.explore.entity_page import explore_page
from annals.api.ui.explore.root_page import root_page
from annals.api.ui.findings_page import findings_page
from annals.api.ui.graph import graph_page
from annals.api.ui.history.interaction_page import interaction_page
from annals.api.ui.history.timeline_page import timeline_page
from annals.api.ui.model.definition_pages import capabilities_page, model_page
from annals.api.ui.overview import overview_page
from annals.api.ui.page_route import WITH_FORM, PageFunction, PageRoute, RouteTable
from annals.api.ui.replication.links_page import link_page, links_page, promote_page, repair_page
from annals.api.ui.search_page import search_page
from annals.api.ui.settings_page import settings_page
from annals.api.ui.sign_in.login import LOGIN_METHODS
from annals.api.ui.subjects_page import subjects_page
from annals.api.ui.subscriptions.confirmations import delete_subscription_page, discard_page
from annals.api.ui.subscriptions.edit_page import edit_subscription_page, new_subscription_page
from annals.api.ui.subscriptions.list_page import list_page
from annals.api.ui.subscriptions.subscription_form import CREDENTIAL
from annals.api.ui.subscriptions.subscription_page import subscription_page
from annals.api.ui.transfer.export_download import export_download
from annals.api.ui.transfer.transfer_page import transfer_page

_SUBSCRIPTIONS: Final = "Subscriptions"
_LINKS: Final = "Replication"
_KEYS: Final = "API keys"
_GRANTS: Final = "Grants"
_TRANSFER: Final = "Import and export"


def _subscription_form(template: str, answer: PageFunction) -> PageRoute:
    return PageRoute(
        template, answer, _SUBSCRIPTIONS, WITH_FORM, takes_asof=False, keeps_form=True, secret_fields=(CREDENTIAL,)
    )


PAGES: Final = RouteTable(
    (
        PageRoute("", overview_page, "Overview", follows_changes=True),
        PageRoute("search", search_page, "Search", takes_asof=False),
        PageRoute("explore/", root_page, "Explore", follows_changes=True),
        PageRoute("explore/{xid:path}", explore_page, "Explore", follows_changes=True),
        PageRoute("compare/", compare_page, "Explore"),
        PageRoute("compare/{xid:path}", compare_page, "Explore"),
        PageRoute("new/{xid:path}", new_page, "Explore", WITH_FORM, takes_asof=False, keeps_form=True),
        PageRoute("edit/", edit_page, "Explore", WITH_FORM, takes_asof=False, keeps_form=True),
        PageRoute("edit/{xid:path}", edit_page, "Explore", WITH_FORM, takes_asof=False, keeps_form=True),
        PageRoute("delete/{xid:path}", delete_page, "Explore", WITH_FORM, takes_asof=False),
        PageRoute("restore/", restore_page, "Explore", WITH_FORM, writes_with_asof=True),
        PageRoute("restore/{xid:path}", restore_page, "Explore", WITH_FORM, writes_with_asof=True),
        PageRoute("model", model_page, "Model", WITH_FORM, keeps_form=True),
        PageRoute("capabilities", capabilities_page, "Capabilities", WITH_FORM, keeps_form=True),
        PageRoute("graph/{xid:path}", graph_page, "Explore"),
        PageRoute("subscriptions", list_page, _SUBSCRIPTIONS, takes_asof=False),
        _subscription_form("subscriptions/new", new_subscription_page),
        PageRoute("subscriptions/{id}", subscription_page, _SUBSCRIPTIONS, WITH_FORM, takes_asof=False),
        _subscription_form("subscriptions/{id}/edit", edit_subscription_page),
        PageRoute("subscriptions/{id}/delete", delete_subscription_page, _SUBSCRIPTIONS, WITH_FORM, takes_asof=False),
        PageRoute("subscriptions/{id}/discard/{sequence}", discard_page, _SUBSCRIPTIONS, WITH_FORM, takes_asof=False),
        PageRoute("links", links_page, _LINKS, takes_asof=False, needs_admin=True),
        PageRoute("links/{id}", link_page, _LINKS, WITH_FORM, takes_asof=False, needs_admin=True),
        PageRoute("links/{id}/promote", promote_page, _LINKS, WITH_FORM, takes_asof=False, needs_admin=True),
        PageRoute("links/{id}/repair", repair_page, _LINKS, WITH_FORM, takes_asof=False, needs_admin=True),
        PageRoute("findings", findings_page, "Findings"),
        PageRoute("transfer", transfer_page, _TRANSFER, WITH_FORM, takes_asof=False),
        PageRoute("transfer/export", export_download, _TRANSFER, takes_asof=False),
        PageRoute("settings", settings_page, "Settings", takes_asof=False, needs_admin=True),
        PageRoute("keys", keys_page, _KEYS, WITH_FORM, keeps_form=True),
        PageRoute("keys/{id}/rotate", rotate_page, _KEYS, WITH_FORM, takes_asof=False),
        PageRoute("keys/{id}/revoke", revoke_key_page, _KEYS, WITH_FORM, takes_asof=False),
        PageRoute("grants", grants_page, _GRANTS, WITH_FORM, keeps_form=True),
        PageRoute("grants/{id}/revoke", revoke_grant_page, _GRANTS, WITH_FORM, takes_asof=False),
        PageRoute("confluent", subjects_page, "Explore"),
        PageRoute("timeline", timeline_page, "Timeline", follows_changes=True),
        PageRoute("interactions/{id}", interaction_page, "Timeline"),
    )
)
#: The templates of the paths, for log lines, where `{path}` stands for all remaining segments.
UI_PATHS: Final = (
    "/ui",
    *("/ui/" + "/".join(path) for path in LOGIN_METHODS),
    "/ui/static/{name}",
    *(f"/ui/{route.template}".replace("{xid:path}", "{path}") for route in PAGES.routes),
)
