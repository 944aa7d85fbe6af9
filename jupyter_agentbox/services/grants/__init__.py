"""Lasting answers: given, counted, listed and ended."""
