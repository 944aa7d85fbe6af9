/**
 * Which requests somebody is filling in a form for.
 */
import React from 'react';

import { OpenForms } from '../../ui/card/forms';

/** Whether a form is open on a request's card; a filter does not hide it, or what is typed there would be lost if it ended. */
export function useFilledIn(): (id: string) => boolean {
  const forms = React.useContext(OpenForms);
  return id => (forms.get(id)?.mode ?? 'choose') !== 'choose';
}
