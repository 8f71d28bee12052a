"""ISR and its rivals in every regime: ``isr bench regimes``."""
