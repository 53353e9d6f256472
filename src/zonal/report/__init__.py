"""Results rendered for people and for programs; nothing is computed here."""
