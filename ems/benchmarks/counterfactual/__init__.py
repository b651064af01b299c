"""Amazon counterfactual sentences: does a review describe something that did not happen?"""
